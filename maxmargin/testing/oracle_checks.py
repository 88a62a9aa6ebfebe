"""Every generic of one example at given weights, against the others and against enumeration."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax

from maxmargin import problem as generics
from maxmargin.features.layout import layout_of
from maxmargin.losses.smoothing import EVERY, has_weight
from maxmargin.runtime.dispatch import supports
from maxmargin.runtime.reach import Generic
from maxmargin.testing.caller import Caller

SOME = 40  # outputs whose distances are compared


class CheckedExample:
    """The checks of one example at given weights."""

    def __init__(
        self, call: Caller, i: int, w: np.ndarray, work: object, rng: np.random.Generator, k: int, known: dict
    ) -> None:
        self.call, self.i, self.w, self.work, self.rng, self.k = call, i, w, work, rng, k
        self.known = known  # outputs that oracles have returned, at these or other weights
        self.n_parts = int(generics.part_sizes(call.problem)[i])
        self.true_output = generics.true_output(call.problem, i)
        self.size = self.true_output.size
        self.tol = 1e-4 if w.dtype == np.float32 else 1e-9
        self.theta = self.zeros()
        call(generics.scores, w, i, self.theta)

    def zeros(self) -> np.ndarray:
        return np.zeros(self.n_parts, self.w.dtype)

    def parts(self, y: np.ndarray) -> np.ndarray:
        mu = self.zeros()
        self.call(generics.add_output, self.i, y, 1.0, mu)
        return mu

    def close(self, a: float | np.ndarray | list[float], b: float | np.ndarray | list[float], message: str) -> None:
        scale = 1 + np.abs(self.theta[self.theta > generics.IMPOSSIBLE / 2]).sum()
        assert np.allclose(a, b, rtol=self.tol, atol=self.tol * scale), f"example {self.i}: {message}: {a} and {b}"

    def check(self, outputs: list[np.ndarray] | None) -> None:
        self.check_linear_map()
        outputs = None if outputs is None else [np.ascontiguousarray(y, np.int32) for y in outputs]
        self.check_costs(outputs)
        for augmented in (False, True):
            if augmented:
                self.call(generics.augment, self.i, self.theta)
            table = None if outputs is None else np.array([self.parts(y) for y in outputs], np.float64)
            self.check_max(table)
            for name in ("bound", "topk", "exp", "mean", "relax", "block", "marginals"):
                generic = generics.max_marginals if name == "marginals" else getattr(generics, f"{name}_oracle")
                if self.supports(generic):
                    getattr(self, f"check_{name}")(table)
            if self.supports(generics.sample_oracle) and not augmented:
                self.check_samples()
        if outputs is not None and self.supports(generics.squared_diameters) and not self.w.any():
            self.check_diameter(outputs)

    def supports(self, generic: Generic) -> bool:
        return supports(generic, self.call.problem)

    def check_linear_map(self) -> None:
        is_possible = self.theta > generics.IMPOSSIBLE / 2
        delta = np.where(is_possible, self.rng.normal(size=self.n_parts), 0).astype(self.w.dtype)
        moved, sums = np.zeros_like(self.w), np.zeros(self.w.size)
        self.call(generics.spread, moved, self.i, delta, 2.0)
        self.close(np.dot(self.w, moved), 2 * np.dot(self.theta, delta), "spread is not the adjoint of scores")
        self.call(generics.accumulate, sums, self.i, delta, 2.0)
        self.close(sums, moved, "accumulate differs from spread")
        layout = layout_of(self.call.problem)
        layout.complete(moved)
        self.close(layout.to_solver(layout.to_model(moved)), moved, "spread changes weights that layout leaves out")
        squared = self.call(generics.squared_norm, self.i, delta, self.work)
        self.close(4 * squared, layout.squared_length(moved), "squared_norm is not that of spread")

    def check_costs(self, outputs: list[np.ndarray] | None) -> None:
        cost = self.zeros()
        self.call(generics.augment, self.i, cost)
        self.close(
            self.call(generics.score_output, self.i, cost, self.true_output), 0.0, "the true output must cost nothing"
        )
        for y in outputs or []:
            value = self.call(generics.score_output, self.i, cost, y)
            assert value >= -self.tol, f"example {self.i}: output {y} has the negative cost {value}"

    def check_max(self, table: np.ndarray | None) -> None:
        y, again = np.zeros(self.size, np.int32), np.zeros(self.size, np.int32)
        value = self.call(generics.max_oracle, self.i, self.theta, y, self.work)
        self.call(generics.max_oracle, self.i, self.theta, again, self.work)
        assert np.array_equal(y, again), f"example {self.i}: max_oracle broke a tie in two ways: {y} and {again}"
        self.close(value, self.call(generics.score_output, self.i, self.theta, y), "max_oracle returns a wrong score")
        self.close(value, np.dot(self.theta, self.parts(y)), "score_output differs from the parts of add_output")
        if self.supports(generics.bound_oracle):  # it need not be the best
            return
        lowest = self.call(generics.score_output, self.i, self.theta, self.true_output)
        assert value >= lowest - self.tol * (1 + abs(lowest)), f"example {self.i}: the true output beats max_oracle"
        for other in self.known.values():
            score = self.call(generics.score_output, self.i, self.theta, other)
            slack = self.tol * (1 + abs(score) + np.abs(self.theta[self.theta > generics.IMPOSSIBLE / 2]).sum())
            assert value >= score - slack, (
                f"example {self.i}: max_oracle returns {y} of score {value:.6g}, but {other}, which it returned "
                f"before, has {score:.6g}: does it leave out costs?"
            )
        self.known[tuple(y.tolist())] = y
        if table is not None:
            self.close(value, (table @ self.theta).max(), "max_oracle differs from enumeration")

    def check_bound(self, table: np.ndarray | None) -> None:
        y = np.zeros(self.size, np.int32)
        bound = self.call(generics.bound_oracle, self.i, self.theta, y, self.work)
        score = self.call(generics.score_output, self.i, self.theta, y)
        self.above(bound, score, "bound_oracle returns less than the score of its own output")
        self.above_all(bound, table, "bound_oracle")

    def above(self, bound: float, score: float, message: str) -> None:
        slack = self.tol * (1 + abs(score) + np.abs(self.theta[self.theta > generics.IMPOSSIBLE / 2]).sum())
        assert bound >= score - slack, f"example {self.i}: {message}: {bound} and {score}"

    def above_all(self, bound: float, table: np.ndarray | None, name: str) -> None:
        """No output may score above an upper bound: those that are known, or all."""
        for y in [self.true_output, *self.known.values()]:
            score = self.call(generics.score_output, self.i, self.theta, y)
            self.above(bound, score, f"{name} returns less than the score of the output {y}")
        if table is not None:
            self.above(bound, (table @ self.theta).max(), f"{name} returns less than the highest score")

    def check_relax(self, table: np.ndarray | None) -> None:
        mu = self.zeros()
        bound = self.call(generics.relax_oracle, self.i, self.theta, mu, self.work)
        self.above_all(bound, table, "relax_oracle")
        self.above(bound, float(np.dot(self.theta, mu)), "relax_oracle returns less than the score of its mean parts")
        self.check_range(mu, table, "relax_oracle")
        for name in ("method", "integrality"):
            assert hasattr(self.work, name), f"relax_oracle needs work.{name}"

    def check_range(self, mu: np.ndarray, table: np.ndarray | None, name: str) -> None:
        """Mean parts, be they of a relaxation, are between the least and the most that outputs have."""
        assert np.isfinite(mu).all(), f"example {self.i}: {name} writes mean parts that are not finite"
        if table is not None:
            slack = 100 * self.tol
            is_within = (mu >= table.min(axis=0) - slack) & (mu <= table.max(axis=0) + slack)
            assert is_within.all(), f"example {self.i}: {name} writes mean parts that no mixture of outputs has"

    def check_mean(self, table: np.ndarray | None) -> None:
        mu = self.zeros()
        is_exact = self.call(generics.mean_oracle, self.i, self.theta, mu, self.work)
        self.check_range(mu, table, "mean_oracle")
        if is_exact and table is not None:
            self.close(mu, softmax(table @ self.theta) @ table, "the means of mean_oracle differ from enumeration")

    def check_marginals(self, table: np.ndarray | None) -> None:
        """Where it writes anything, it must be the best score of the outputs that have the part."""
        y, best = np.zeros(self.size, np.int32), np.full(self.n_parts, np.nan)
        value = self.call(generics.max_oracle, self.i, self.theta, y, self.work)
        self.call(generics.max_marginals, self.i, self.theta, best, self.work)
        is_written = ~np.isnan(best)
        assert is_written.any() or not self.n_parts, f"example {self.i}: max_marginals writes nothing"
        has_part = is_written & (self.parts(y) > 0.5)
        self.close(best[has_part], value, "max_marginals of the best output's parts are not its score")
        for p in np.flatnonzero(is_written) if table is not None else ():
            column = table[:, p]  # type: ignore[index]
            is_indicator = bool(np.isin(column, (0, 1)).all())
            assert is_indicator, f"example {self.i}: max_marginals writes part {p}, of which outputs have more than one"
            if column.any():
                highest = (table[column == 1] @ self.theta).max()  # type: ignore[index]
                self.close(best[p], highest, f"max_marginals of part {p} differ from enumeration")
            else:
                is_impossible = best[p] < generics.IMPOSSIBLE / 2
                assert is_impossible, f"example {self.i}: max_marginals has part {p}, which no output has"

    def check_nothing_left(self) -> None:
        """Where no output is possible, the score of what the max oracle finds must say so."""
        y = np.zeros(self.size, np.int32)
        self.call(generics.max_oracle, self.i, self.theta, y, self.work)
        self.call(generics.scores, self.w, self.i, self.theta)  # which some oracles change
        score = self.call(generics.score_output, self.i, self.theta, y)
        is_impossible = score < generics.IMPOSSIBLE / 2
        assert is_impossible, f"example {self.i}: max_oracle finds {y}, though restrict leaves no output"

    def check_topk(self, table: np.ndarray | None) -> None:
        found, values = np.zeros((self.k, self.size), np.int32), np.zeros(self.k)
        count = self.call(generics.topk_oracle, self.i, self.theta, found, values, EVERY, self.work)
        assert len({tuple(y) for y in found[:count]}) == count, f"example {self.i}: topk_oracle repeats an output"
        scores = [self.call(generics.score_output, self.i, self.theta, y) for y in found[:count]]
        self.close(values[:count], scores, "topk_oracle returns wrong scores")
        self.close(np.sort(scores)[::-1], scores, "topk_oracle is not sorted")
        if table is not None:
            assert count == min(self.k, len(table)), f"example {self.i}: topk_oracle found {count} of {len(table)}"
            self.close(np.sort(table @ self.theta)[::-1][:count], scores, "topk_oracle differs from enumeration")
        level, enough = float(np.sum(values[: count // 2] - values[count // 2])) + self.tol, np.zeros_like(values)
        fewer = self.call(generics.topk_oracle, self.i, self.theta, found, enough, level, self.work)
        self.close(enough[:fewer], values[:fewer], "topk_oracle finds other outputs at a level of smoothing")
        has_all = fewer == count or not has_weight(values, fewer, level - 2 * self.tol)
        assert has_all, f"example {self.i}: topk_oracle leaves out outputs that have a weight at the level {level:g}"

    def check_exp(self, table: np.ndarray | None) -> None:
        mu = self.zeros()
        log_z = self.call(generics.exp_oracle, self.i, self.theta, mu, self.work)
        if table is not None:
            scores = table @ self.theta
            self.close(log_z, logsumexp(scores), "the log-partition function differs from enumeration")
            self.close(mu, softmax(scores) @ table, "the means of exp_oracle differ from enumeration")

    def check_transitions(self, outputs: list[np.ndarray]) -> None:
        """Probabilities of all pairs of labels at each two neighbours; `max_marginals` are of labels of positions."""
        best = np.full(self.n_parts, np.nan)
        self.call(generics.max_marginals, self.i, self.theta, best, self.work)
        n_labels = int((~np.isnan(best)).sum()) // max(self.size, 1)  # of which outputs may have fewer
        pairs = np.arange(n_labels**2, dtype=np.int32)
        found = np.full(max(self.size - 1, 0) * pairs.size, np.nan)
        self.call(generics.transition_marginals, self.i, self.theta, pairs, found, self.work)
        scores = np.array([self.parts(y) for y in outputs], np.float64) @ self.theta
        expected = np.zeros((max(self.size - 1, 0), pairs.size))
        for y, share in zip(outputs, softmax(scores), strict=True):
            expected[np.arange(self.size - 1), y[:-1] * n_labels + y[1:]] += share
        self.close(found, expected.ravel(), "transition_marginals differ from enumeration")

    def check_block(self, table: np.ndarray | None) -> None:
        """The move of `block_oracle` must end inside the polytope, where no output has a higher slope."""
        if table is None:
            return
        for curvature in (0.0, 0.1, 1.0, 100.0):
            mean = self.rng.dirichlet(np.full(len(table), 0.3)) @ table
            mu, delta = (mean - self.parts(self.true_output)).astype(self.w.dtype), self.zeros()
            top = self.call(generics.block_oracle, self.i, self.theta, curvature, mu, delta, self.work)
            self.close(top, (table @ self.theta).max(), "block_oracle returns a wrong score")
            reached, moved, bend = mean + delta, np.zeros_like(self.w), self.zeros()
            self.call(generics.spread, moved, self.i, delta, 1.0)
            self.call(generics.scores, moved, self.i, bend)
            for direction in self.rng.normal(size=(10, self.n_parts)):
                excess = direction @ reached - (table @ direction).max()
                assert excess <= 100 * self.tol, f"example {self.i}: block_oracle leaves the polytope by {excess:.2g}"
            slope = np.where(self.theta > generics.IMPOSSIBLE / 2, self.theta - curvature * bend, 0)
            self.close((table @ slope).max(), reached @ slope, "block_oracle stops where an output has a higher slope")

    def check_diameter(self, outputs: list[np.ndarray]) -> None:
        if len(outputs) > SOME:
            outputs = [outputs[k] for k in self.rng.permutation(len(outputs))[:SOME]]
        features = np.zeros((len(outputs), self.w.size), self.w.dtype)
        for row, y in zip(features, outputs, strict=True):
            self.call(generics.spread, row, self.i, self.parts(y), 1.0)
        largest = max(float(np.square(features - row).sum(axis=1).max()) for row in features)
        bound = float(generics.squared_diameters(self.call.problem)[self.i])
        assert largest <= bound * (1 + self.tol), (
            f"example {self.i}: two outputs have features at a squared distance of {largest}, but squared_diameters is "
            f"{bound}"
        )

    def check_samples(self) -> None:
        """Compare the mean parts of samples, which scatter, with those of the exp oracle."""
        n = 200
        draws, outputs, mu = self.rng.random((n, self.size)), np.zeros((n, self.size), np.int32), self.zeros()
        self.call(generics.sample_oracle, self.i, self.theta, draws, outputs, self.work)
        self.call(generics.exp_oracle, self.i, self.theta, mu, self.work)
        parts = np.array([self.parts(y) for y in outputs], np.float64)
        is_close = np.abs(parts.mean(axis=0) - mu) <= 6 * parts.std(axis=0) / np.sqrt(n) + 12 / n
        assert is_close.all(), f"example {self.i}: samples of sample_oracle have other means than exp_oracle"
