"""Commands about texts and data: tagging texts, converting files, classes of words, what to annotate
next, what is wrong with data.
"""
