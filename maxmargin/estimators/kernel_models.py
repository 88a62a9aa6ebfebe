"""Structural SVMs and conditional random fields with kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxmargin.encode.kernelized.kernel_encoders import (
    KernelCandidateEncoder,
    KernelChainEncoder,
    KernelGraphEncoder,
    KernelMulticlassEncoder,
    KernelTreeEncoder,
)
from maxmargin.estimators.candidate_models import CandidateMaxMargin
from maxmargin.estimators.class_models import MulticlassSVM
from maxmargin.estimators.foundation.arguments import LabelMaxMargin
from maxmargin.estimators.foundation.fit_options import estimator
from maxmargin.estimators.foundation.sequence_base import SequenceCRF, SequenceModel
from maxmargin.estimators.foundation.trainers import Trainer
from maxmargin.estimators.graph_models import GraphModel
from maxmargin.estimators.tree_models import TreeModel
from maxmargin.parameters import arguments, parameter

if TYPE_CHECKING:
    from sklearn.utils import Tags


@arguments
class KernelArguments:
    """Of models with kernels."""

    kernel: Any = parameter(
        '{"rbf", "poly", "linear", "precomputed"} or callable',
        "The kernel of two rows of features: exp(-gamma ||x - x'||^2), (gamma <x, x'> + coef0)^degree, <x, x'>, or a "
        "function of two matrices that returns the values of all pairs of their rows. Precomputed, each row of X holds "
        "its values with all N rows of the training examples, one example after the other.",
        default="rbf",
    )
    gamma: Any = parameter(
        'float or {"scale", "auto"}',
        'Factor in the kernels "rbf" and "poly"; "scale" is 1 / (F times the variance of X), "auto" 1 / F.',
        default="scale",
    )
    degree: int = parameter("int", 'Degree of the kernel "poly".', default=3)
    coef0: float = parameter("float", 'Constant in the kernel "poly", 0 or more.', default=1.0)
    cache_size: float = parameter(
        "float",
        "Megabytes for rows of the Gram matrix. Those that are needed, and are not kept, are computed again; where the "
        "kernel is a function, is precomputed or X is a large sparse matrix, all must find a place.",
        default=4000.0,
    )


@estimator
class KernelChainSVM(LabelMaxMargin, KernelArguments, SequenceModel):
    """Structural SVM for sequence labelling with a kernel: scores of labels that are not linear in the features.

    Minimises the objective of `ChainSVM` where each label has a function of the positions' features in place of a row
    of weights: a combination of the kernel's values with those of the training positions. Transitions are linear. All
    is trained in the dual, by the solvers that can do so: "auto", "bcfw", "excessive-gap", "one-slack", "n-slack",
    "frank-wolfe", "exponentiated-gradient" and "extragradient".

    A step takes time in proportion to the number N of training positions, and a row of the Gram matrix as many numbers.
    For large N, train a `ChainSVM` on the features of `sklearn.kernel_approximation`.

    Attributes
    ----------
    classes_ : (L,) array
        The labels, sorted.
    coef_ : Bunch
        ``dual`` (S, L), the coefficients of the support positions, and ``transitions`` (L, L).
    support_ : (S,) array
        The numbers of the positions, among all of the training sequences, that have coefficients.
    support_vectors_ : (S, F) array
        Their features, unless the kernel is precomputed.
    n_features_in_ : int
        The number of features F.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import KernelChainSVM
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.uniform(-1, 1, size=(4, 2)) for _ in range(30)]
    >>> y = [(x.prod(axis=1) > 0).astype(int) for x in X]  # the two features agree in sign: no linear scores say so
    >>> model = KernelChainSVM(kernel="rbf", gamma=2.0, C=10.0, tol=0.1, random_state=0).fit(X[:20], y[:20])
    >>> model.score(X[20:], y[20:]) > 0.7
    True
    >>> model.coef_.dual.shape == (len(model.support_), 2)
    True
    """

    _encoder_type = KernelChainEncoder


@estimator
class KernelChainCRF(KernelArguments, SequenceCRF):
    """Linear-chain conditional random field with a kernel: p(y) ~ exp(score(y)), with the scores of `KernelChainSVM`.

    Trained in the dual, by "exponentiated-gradient" unless said otherwise. All positions are support positions.

    Attributes
    ----------
    classes_, coef_, support_, support_vectors_, n_features_in_
        As those of `KernelChainSVM`.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import KernelChainCRF
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.uniform(-1, 1, size=(4, 2)) for _ in range(30)]
    >>> y = [(x.prod(axis=1) > 0).astype(int) for x in X]
    >>> model = KernelChainCRF(kernel="poly", degree=2, C=1.0, random_state=0).fit(X[:20], y[:20])
    >>> model.score(X[20:], y[20:]) > 0.7
    True
    >>> model.predict_marginals(X[20:21])[0].shape
    (4, 2)
    """

    _encoder_type = KernelChainEncoder


@estimator
class KernelTreeSVM(LabelMaxMargin, KernelArguments, TreeModel):
    """Structural SVM that labels the nodes of trees with a kernel: scores of labels that are not linear in features.

    Minimises the objective of `TreeSVM` where each label has a function of the nodes' features in place of a row of
    weights: a combination of the kernel's values with those of the training nodes. Weights of edges are linear. It is
    trained as `KernelChainSVM` is, of N nodes.

    Attributes
    ----------
    coef_ : Bunch
        ``dual`` (S, L), the coefficients of the support nodes; ``transitions`` (L, L), from the parent's label (row) to
        the child's (column); with edge features, ``edges`` (F_edge, L, L).
    classes_, support_, support_vectors_, n_features_in_
        As those of `KernelChainSVM`, of nodes in place of positions.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import KernelTreeSVM, Tree
    >>> rng = np.random.default_rng(0)
    >>> X = [Tree(rng.uniform(-1, 1, size=(3, 2)), edges=[(0, 1), (0, 2)]) for _ in range(40)]
    >>> y = [(tree.features.prod(axis=1) > 0).astype(int) for tree in X]  # no linear scores say so
    >>> model = KernelTreeSVM(kernel="rbf", gamma=2.0, C=10.0, tol=0.1, random_state=0).fit(X[:30], y[:30])
    >>> model.score(X[30:], y[30:]) > 0.7
    True
    """

    _encoder_type = KernelTreeEncoder


@estimator
class KernelGraphSVM(LabelMaxMargin, KernelArguments, GraphModel):
    """Structural SVM that labels the nodes of graphs with a kernel: scores of labels that are not linear in features.

    Minimises the objective of `GraphSVM` where each label has a function of the nodes' features in place of a row of
    weights: a combination of the kernel's values with those of the training nodes. Weights of edges are linear. It is
    trained as `KernelChainSVM` is, of N nodes; superpixels keep N small where pixels would not.

    Attributes
    ----------
    coef_ : Bunch
        ``dual`` (S, L), the coefficients of the support nodes, or ``dual[type]`` for each type of nodes, where there
        are several; ``edges`` as those of `GraphSVM`.
    n_edge_features_in_ : int
        The number of features of edges.
    classes_, support_, support_vectors_, n_features_in_
        As those of `KernelChainSVM`, of nodes in place of positions.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import Graph, KernelGraphSVM
    >>> rng = np.random.default_rng(0)
    >>> X = [Graph(rng.uniform(-1, 1, size=(3, 2)), [(0, 1), (1, 2), (2, 0)]) for _ in range(40)]
    >>> y = [(graph.features.prod(axis=1) > 0).astype(int) for graph in X]  # no linear scores say so
    >>> model = KernelGraphSVM(kernel="rbf", gamma=2.0, C=10.0, tol=0.1, random_state=0).fit(X[:30], y[:30])
    >>> model.score(X[30:], y[30:]) > 0.7
    True
    """

    _encoder_type = KernelGraphEncoder
    _trainer = Trainer()


@estimator
class KernelCandidateSVM(KernelArguments, CandidateMaxMargin):
    """Structural SVM that chooses among candidates with a kernel: scores that are not linear in their features.

    Minimises the objective of `CandidateSVM` where the score is a function of a candidate's features: a combination of
    the kernel's values with those of the training candidates. It is trained as `KernelChainSVM` is, of N candidates.

    Attributes
    ----------
    coef_ : Bunch
        ``dual`` (S,), the coefficients of the support candidates.
    support_, support_vectors_, n_features_in_
        As those of `KernelChainSVM`, of candidates in place of positions.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import KernelCandidateSVM
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.uniform(-1, 1, size=(4, 2)) for _ in range(60)]
    >>> y = [int(np.argmin(np.linalg.norm(x, axis=1))) for x in X]  # the one in the middle: no linear score says so
    >>> model = KernelCandidateSVM(kernel="rbf", C=10.0, random_state=0).fit(X[:40], y[:40])
    >>> model.score(X[40:], y[40:]) > 0.7
    True
    """

    _encoder_type = KernelCandidateEncoder


@estimator
class KernelMulticlassSVM(KernelArguments, MulticlassSVM):
    """Multiclass SVM of Crammer and Singer with a kernel, where `sklearn.svm.SVC` trains a model of each two classes.

    Minimises the objective of `MulticlassSVM` where each class has a function of the features in place of a row of
    weights: a combination of the kernel's values with those of the training rows. It is trained as `KernelChainSVM` is.

    Attributes
    ----------
    coef_ : Bunch
        ``dual`` (S, L), the coefficients of the support rows.
    n_features_in_ : int
        The number of features F; of a precomputed kernel, of training rows.
    classes_, support_, support_vectors_
        As those of `KernelChainSVM`, of rows in place of positions.
    feature_names_in_ : (F,) array
        The names of the columns, if X was a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import KernelMulticlassSVM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(200, 2))
    >>> y = np.where(np.linalg.norm(X, axis=1) < 0.7, "inside", np.where(X[:, 0] > 0, "right", "left"))
    >>> model = KernelMulticlassSVM(kernel="rbf", C=10.0, random_state=0).fit(X[:150], y[:150])
    >>> model.score(X[150:], y[150:]) > 0.7
    True
    """

    _encoder_type = KernelMulticlassEncoder

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags
