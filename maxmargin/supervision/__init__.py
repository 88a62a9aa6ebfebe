"""What is known of the outputs of examples: true outputs, costs, and what agrees with weaker annotations."""
