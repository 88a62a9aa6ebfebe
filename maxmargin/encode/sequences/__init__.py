"""What models of sequences need beside the encoder of chains: rules of transitions, and labels of longer memory."""
