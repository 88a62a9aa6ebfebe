"""What `check_data` finds in data that is odd on purpose."""

from maxmargin.text import check_data, convert_tags

GOOD = [["Ann", "lives", "in", "New", "York"], ["She", "is", "well", "."]]
TAGS = [["B-PER", "O", "O", "B-LOC", "I-LOC"], ["O"] * 4]


def told(data):
    return {(f.level, f.part, f.what): (f.n, f.examples) for f in check_data(data).findings}


def test_data_that_are_well():
    many = [[*sentence, str(k)] for k in range(5) for sentence in GOOD]
    found = check_data({"train": (many, [[*tags, "O"] for _ in range(5) for tags in TAGS])})
    assert (found.findings, str(found)) == ([], "nothing odd was found")


def test_what_is_wrong_in_one_file():
    X = [*GOOD, GOOD[0], [], ["a\u200bb", "caf\u00c3\u00a9"], ["She", "saw", "New", "York"], ["Ann"]]
    y = [*TAGS, ["B-LOC", "O", "O", "I-LOC", "O"], [], ["O", "O"], ["O"] * 4, ["B-ORG"]]
    found = told({"train": (X, y)})
    assert found["error", "train", "tags that break the rules of IOB2"] == (
        1,
        ["train[2] goes from 'O' to 'I-LOC' at position 3"],
    )
    assert found["warning", "train", "sentences without tokens"] == (1, ["train[3]"])
    n, examples = found["warning", "train", "tokens with odd characters"]
    assert (n, examples[0]) == (2, "train[4]: 'a\\u200bb'")
    what = "sentences that have other tags elsewhere"
    assert found["warning", "train", what] == (1, ["train[0] and train[2]: 'Ann lives in New York'"])
    assert found["note", "train", "sentences that are there already"][0] == 1
    assert found["note", "train", "names that have several types"] == (1, ["'Ann': PER 1, LOC 1, ORG 1"])
    missed = found["note", "train", "names of several words that are elsewhere no entity"]
    assert missed == (1, ["'New York': LOC 1, none 1"])
    assert found["note", "train", "types of fewer than 5 entities"][0] == 3
    levels = [finding.level for finding in check_data({"train": (X, y)}).findings]
    assert levels == sorted(levels, key=["error", "warning", "note"].index)


def test_what_files_share():
    found = told({"train": (GOOD, TAGS), "test": ([*GOOD[1:], ["EFE"]], [*TAGS[1:], ["B-ORG"]])})
    assert found["warning", "test", "sentences that are in train, too (100.0%)"] == (1, ["test[0]: 'She is well .'"])
    assert found["warning", "test", "tags or types that are not in train, and are never predicted"] == (1, ["ORG"])


def test_parts_of_other_schemes():
    bilou = convert_tags(TAGS, "BILOU")
    what = "tags of BILOU, which are of IOB2 in train"
    assert told({"train": (GOOD, TAGS), "test": (GOOD[:1], bilou[:1])})["warning", "test", what] == (5, [])
    alike = [["Ann"]], [["S-PER"]]  # of IOBES, and of IOBES alone
    either = [["Ann", "ran"]], [["I-PER", "O"]]  # of IOB1, and of IOE1, too
    known = {"train": (GOOD, convert_tags(TAGS, "IOE1"))}
    for data in ({"train": (GOOD, bilou), "test": (GOOD, bilou)}, {**known, "test": either}):
        assert not [what for *_, what in told(data) if "which are of" in what]
    assert [what for *_, what in told({**known, "test": alike}) if "which are of" in what]


def test_tags_that_spell_no_entities_or_are_not_known():
    found = told({"train": ([["a", "b"]], [["NN", "VB"]])})
    assert found == {("note", "train", "tags of fewer than 5 tokens"): (2, ["NN: 1", "VB: 1"])}
    assert told({"train": ([["a", "b"]], [["B-PER", None]])}) == {}
    assert [*told({"train": ([[]], [[]])})] == [("error", "train", "no sentence with a token")]
