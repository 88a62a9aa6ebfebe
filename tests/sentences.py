"""A few tagged sentences, of words, parts of speech and entities."""

from maxmargin.text import convert_tags

NAMES = {"LOC": ["Rome", "New York", "Lima"], "PER": ["Ann", "Bob Dole"], "ORG": ["EFE", "La Caixa"]}
PATTERNS = ["{PER} lives in {LOC} .", "{ORG} reports from {LOC} .", "Yesterday {PER} left {ORG} ."]


def tagged_sentences(n=24):
    """Lists of tuples of a word, a part of speech and a tag in IOB2."""
    found = []
    for k in range(n):
        sentence = []
        for word in PATTERNS[k % 3].split():
            kind = word[1:-1] if word.startswith("{") else None
            words = NAMES[kind][(k // 3) % len(NAMES[kind])].split() if kind else [word]
            for t, part in enumerate(words):
                pos = "NNP" if kind else "VB" if part[0].islower() else "RB" if part.isalpha() else "."
                sentence.append((part, pos, f"{'BI'[t > 0]}-{kind}" if kind else "O"))
        found.append(sentence)
    return found


def column_text(sentences, separator=" "):
    return "".join("".join(f"{separator.join(token)}\n" for token in sentence) + "\n" for sentence in sentences)


def respelled(sentences, scheme):
    """The sentences with tags of another scheme."""
    tags = convert_tags([[token[2] for token in sentence] for sentence in sentences], scheme)
    return [
        [(*token[:2], tag) for token, tag in zip(sentence, row, strict=True)]
        for sentence, row in zip(sentences, tags, strict=True)
    ]
