"""Commands about texts and data: tagging texts, converting files, what to annotate next, what is wrong with data."""
