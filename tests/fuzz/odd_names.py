"""Hostile features by name, and rules of tags: changes of the inputs of `tests.fuzz.hostile`."""

import numpy as np

TAGS = {"a": "O", "b": "B-x", "c": "I-x"}
ODD_VALUES = [np.nan, np.inf, 1e13, 1e300, 10**400, -0.0, 1e-300, None, 1j, b"x", object, np.float32(2), np.bool_(True)]
ODD_VALUES += ["", ":", "\0", "\ud800", [], {}, ["x", "x"], {"": {"": 1}}, [1], [["x"]], {1: 2}, np.ones(2), np.ones(1)]
ODD_KEYS = ["", ":", "f:x", "\0", "\ud800", "x" * 10_000, 0, None, 1.5, ("f", "x"), b"f", True, np.str_("f")]
ODD_ITEMS = [{}, [], set(), ("x", "x"), {"x"}, "x", "", None, 3, [3], [None], [["x"]], np.array(["x"]), np.zeros(2)]
ODD_COUNTS = [None, 0, 1, 2, 3, -1, 2**31, 10**400, 1.5, "1", True, np.nan]


def items_of(x):
    """The features of the rows of a matrix by name."""
    return [{f"f{k}": float(value) for k, value in enumerate(row)} | {"sign": str(row[0] > 0)} for row in np.array(x)]


def change_items(hostile, change):
    """Give all features names, and change those of some items."""

    def changed(x):
        if isinstance(x, tuple):
            return x._replace(features=changed(x.features)) if hasattr(x, "_fields") else (changed(x[0]), *x[1:])
        items = x if isinstance(x, list) else items_of(x)
        return [change(item) if hostile.rng.random() < 0.4 else item for item in items]

    hostile.X = [changed(x) for x in hostile.X]


def by_name(hostile):
    change_items(hostile, lambda item: item)


def by_lists_of_names(hostile):
    change_items(
        hostile, lambda item: [f"{name}{value > 0}" if name != "sign" else name for name, value in item.items()]
    )


def with_odd_values(hostile):
    value = hostile.pick(ODD_VALUES)
    change_items(hostile, lambda item: {**item, "odd": value, "f0": value})


def with_odd_keys(hostile):
    key = hostile.pick(ODD_KEYS)
    change_items(hostile, lambda item: {key: 1.0, **item})


def with_odd_items(hostile):
    item = hostile.pick(ODD_ITEMS)
    change_items(hostile, lambda _: item)


def nested_without_end(hostile):
    item: dict = {}
    item["in"] = item
    change_items(hostile, lambda _: item)


def partly_by_name(hostile):
    first = hostile.X[0]
    by_name(hostile)
    hostile.X[-1] = first


def with_rare_names(hostile):
    by_name(hostile)
    hostile.model.set_params(min_count=hostile.pick(ODD_COUNTS))


def with_hashed_names(hostile):
    by_name(hostile)
    hostile.model.set_params(n_hashed=hostile.pick([*ODD_COUNTS, 5, 1000]))


def with_tags(hostile):
    """Tags with a scheme, which they mostly break."""
    schemes = ["auto", "auto", "bio", "iobes", "bilou", "iob1", "ioe1", "ioe2", "BIO", "", 3, ["bio"]]
    hostile.model.set_params(constraints=hostile.pick(schemes))
    names = hostile.pick(
        [TAGS, TAGS, {**TAGS, "c": "I-y"}, {**TAGS, "a": "B-y"}, {**TAGS, "a": 0}, {**TAGS, "b": "B-"}]
    )
    keeps = hostile.rng.random() < 0.7

    def mended(tags):
        starts = [str(tag).startswith("I") and (t == 0 or tags[t - 1] == "O") for t, tag in enumerate(tags)]
        return ["B-x" if keeps and is_start else tag for tag, is_start in zip(tags, starts, strict=True)]

    hostile.y = [mended([names[str(label)] for label in labels]) for labels in hostile.y]


OF_NAMES = [
    by_name,
    by_lists_of_names,
    with_odd_values,
    with_odd_keys,
    with_odd_items,
    nested_without_end,
    partly_by_name,
    with_rare_names,
    with_hashed_names,
    with_tags,
]
