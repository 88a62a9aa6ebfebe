"""Features of several sources side by side in one model: transformers, functions of your own, votes of documents."""
