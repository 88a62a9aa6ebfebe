"""A compiler for functions that only compiled code calls.

Numba optimises every function and makes machine code of it, then does both again in each caller that it is linked into,
and once more in the callers of these. What nobody calls from outside needs neither: `InnerCompiler` stops at LLVM's
intermediate code, which takes a sixth to a quarter off the time of a first fit. It is a pipeline of its own, as Numba
provides for; nothing of Numba's is changed.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering


class InnerLibrary(JITCodeLibrary):
    """Code to be linked into that of callers, as it is."""

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            if hasattr(self, "_reload_init"):  # not in old versions
                self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class InnerLowering(NativeLowering):
    """As Numba's own, without machine code: what Python would call is not there."""

    _name = "inner_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = InnerLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        super().run_pass(state)
        described = state["cr"].fndesc
        name = described.qualname.rpartition(".")[2]
        placeholder = _dynfunc.make_function(
            described.lookup_module(), name, "an inner function", 0, state["cr"].env, (state.library,)
        )
        state.targetctx.insert_user_function(placeholder, described, [state.library])
        state["cr"] = state["cr"]._replace(cfunc=placeholder)
        return True


class InnerCompiler(CompilerBase):
    """Numba's pipeline, with the lowering above."""

    def define_pipelines(self) -> list[PassManager]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state).passes
        manager = PassManager("inner")
        manager.passes.extend((InnerLowering if p is NativeLowering else p, text) for p, text in passes)
        manager.finalize()
        return [manager]
