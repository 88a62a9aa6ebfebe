"""The search for the best box beside exhaustive search: CPU time per image, bounds taken and boxes scored.

Exhaustive search is compiled and sums by columns, too: a box costs it a few operations. Images are of three kinds: an
object that stands out, the same with the cost 1 - IoU in the search (as in training), and noise.
"""

from __future__ import annotations

import time

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report

SHAPES = ((30, 40), (60, 80))
N_IMAGES = 10
LEAST = 10.0  # times faster than exhaustive search where an object stands out
SHARE = 0.01  # of all boxes that may be scored there, at most


def exhaustive_search():
    """The best box of a problem's image, one box after the other."""
    from numba import njit

    @njit(error_model="numpy", fastmath={"nnan", "ninf", "nsz", "arcp", "contract", "reassoc"})
    def search(cells, weight, true, sums, best):
        height, width = cells.shape
        area = (true[2] - true[0]) * (true[3] - true[1])
        highest = -1e300
        for top in range(height):
            sums[:] = 0
            for bottom in range(top + 1, height + 1):
                rows = max(min(bottom, true[2]) - max(top, true[0]), 0)
                total = 0.0
                for column in range(width):
                    total += cells[bottom - 1, column]
                    sums[column + 1] += total
                for left in range(width):
                    for right in range(left + 1, width + 1):
                        score = sums[right] - sums[left]
                        if weight > 0:
                            shared = rows * max(min(right, true[3]) - max(left, true[1]), 0)
                            joint = (bottom - top) * (right - left) + area - shared
                            score += weight * (1.0 - shared / joint)
                        if score > highest:
                            highest = score
                            best[0], best[1], best[2], best[3] = top, left, bottom, right
        return highest

    return search


def images(shape, kind, rng):
    """Potentials of the cells, and the box of the object."""
    import numpy as np

    height, width = shape
    top, left = rng.integers(0, height // 2), rng.integers(0, width // 2)
    box = np.array([top, left, top + height // 3, left + width // 3], np.int32)
    cells = rng.normal(size=shape)
    if kind != "noise":
        cells -= 0.5
        cells[box[0] : box[2], box[1] : box[3]] += 1.0
    return cells, box


def measure(shape, kind):
    """Medians over some images: milliseconds of either search, nodes bounded and boxes scored."""
    import numpy as np

    from maxmargin.encode.box_encoder import BoxEncoder
    from maxmargin.problem import max_oracle, workspace
    from maxmargin.testing import Caller

    rng = np.random.default_rng(0)
    cells, boxes = zip(*(images(shape, kind, rng) for _ in range(N_IMAGES)), strict=True)
    X, weight = [c[:, :, None] for c in cells], 10.0 * (kind == "object, with costs")
    problem = BoxEncoder.learn(X, boxes, dtype="float64", fit_intercept=False, min_size=1).problem
    call, peer = Caller(problem), exhaustive_search()
    work, y, sums, best = workspace(problem, 1), np.zeros(4, np.int32), np.zeros(shape[1] + 1), np.zeros(4, np.int32)

    def seconds(function, *args):
        function(*args)
        began, rounds = time.process_time(), 0
        while rounds < 3 or time.process_time() - began < 0.02:
            value = function(*args)
            rounds += 1
        return (time.process_time() - began) / rounds, value

    rows = []
    for i in range(N_IMAGES):
        theta = np.append(cells[i].ravel(), weight)
        ours, score = seconds(call, max_oracle, i, theta, y, work)
        work.heap.counts[:] = 0
        call(max_oracle, i, theta, y, work)
        theirs, expected = seconds(peer, cells[i], weight, boxes[i], sums, best)
        assert np.isclose(score, expected), "the two searches differ"
        rows.append([1e3 * ours, 1e3 * theirs, theirs / ours, *work.heap.counts])
    return [float(value) for value in np.median(rows, axis=0)]


def main() -> None:
    args = parse_arguments(__doc__)
    figures, bars = [], []
    for shape in SHAPES:
        n_boxes = shape[0] * (shape[0] + 1) * shape[1] * (shape[1] + 1) // 4
        for kind in ("object", "object, with costs", "noise"):
            ours, theirs, ratio, nodes, scored = in_fresh_process(measure, shape, kind)
            figures.append([f"{shape[0]} x {shape[1]}, {kind}", n_boxes, int(nodes), int(scored), ours, theirs, ratio])
            if kind != "noise":
                name = f"{shape[0]} x {shape[1]} cells, {kind}"
                bars.append(Bar(f"{name}: at least {LEAST:g} times faster", f"{ratio:.0f} times", ratio >= LEAST))
                share = scored / n_boxes
                bars.append(Bar(f"{name}: scores at most {SHARE:.0%} of the boxes", f"{share:.2%}", share <= SHARE))
    columns = ["image", "boxes", "nodes bounded", "boxes scored", "ms", "exhaustive ms", "ratio"]
    print_table("The best box of an image, medians", columns, figures)
    report(figures, bars, args.json)


if __name__ == "__main__":
    main()
