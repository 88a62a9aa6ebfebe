"""What estimators share: arguments, training, predictions, files, and the families they belong to."""
