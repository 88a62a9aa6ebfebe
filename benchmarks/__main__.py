"""The commands that there are: ``python -m benchmarks``."""

import ast
from pathlib import Path


def commands() -> dict[str, str]:
    """What each command measures, by name."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("[!_]*.py")):
        text = path.read_text(encoding="utf-8")
        about = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        if 'if __name__ == "__main__":' in text and not about.startswith("A program that"):  # which others run
            found[path.stem] = about
    return found


if __name__ == "__main__":
    print("python -m benchmarks.NAME [--help], of which benchmarks/README.md tells more:\n")
    for name, about in commands().items():
        print(f"  {name:17}  {about}")
