"""The tasks of developers and of the continuous integration: ``nox -l`` lists them."""

import nox

nox.options.sessions = ["lint", "types", "tests"]
nox.options.reuse_existing_virtualenvs = True


@nox.session
def lint(session: nox.Session) -> None:
    """Style: ruff."""
    session.install("ruff>=0.6")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Types: mypy on the package."""
    session.install(".[test]")
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """The suite, or the part of it that is named after ``--``."""
    session.install(".[test]")
    session.run("pytest", *session.posargs)
    if not session.posargs:
        session.run("pytest", "-m", "long")


@nox.session
def torch(session: nox.Session) -> None:
    """The tests that need PyTorch."""
    session.install(".[test,torch]")
    session.run("pytest", *(session.posargs or ["tests/torch"]))


@nox.session
def spacy(session: nox.Session) -> None:
    """The tests that need spaCy."""
    session.install(".[test,spacy]")
    session.run("pytest", *(session.posargs or ["tests/spacy"]))


@nox.session
def dask(session: nox.Session) -> None:
    """The tests that need Dask."""
    session.install(".[test,dask]")
    session.run("pytest", "-n0", *(session.posargs or ["tests/dask"]))


@nox.session
def arrow(session: nox.Session) -> None:
    """The tests that need pyarrow."""
    session.install(".[test,arrow]")
    session.run("pytest", "-n0", *(session.posargs or ["tests/arrow"]))


@nox.session
def resources(session: nox.Session) -> None:
    """The tests that need packages with classes of words and lists of names, or that use python-crfsuite."""
    session.install(".[test,classes,names]", "usaddress", "nltk", "gruut", "nervaluate")
    tests = ["tests/text/test_installed.py", "tests/pycrfsuite/test_users.py", "tests/metrics/test_matches.py"]
    session.run("pytest", "-n0", *(session.posargs or tests))


@nox.session
def browser(session: nox.Session) -> None:
    """The tests that open pages in Chromium, which must be there with its driver."""
    session.install(".[test]", "selenium")
    session.run("pytest", "-n0", *(session.posargs or ["tests/browser"]))


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation as a site, in build/docs: pages, reference, gallery, notebooks."""
    session.install(".[docs]")
    session.run("sphinx-build", "-W", "--keep-going", *session.posargs, "docs", "build/docs")


@nox.session
def versions(session: nox.Session) -> None:
    """Runtime, chains and estimators on the oldest and the newest versions that we admit, and by plain njit."""
    session.run(".ci/versions", *session.posargs, external=True)


@nox.session
def coverage(session: nox.Session) -> None:
    """Which lines the tests run; those of compiled loops only where tests interpret them."""
    session.install("-e", ".[test]", "pytest-cov>=5")
    session.run("pytest", "--cov=maxmargin", "--cov-report=term:skip-covered", "--cov-report=html", *session.posargs)


@nox.session
def benchmarks(session: nox.Session) -> None:
    """A benchmark by name, or the list of them."""
    session.install("-e", ".[test]")
    name, *arguments = session.posargs or [""]
    session.run("python", "-m", f"benchmarks.{name}" if name else "benchmarks", *arguments)
