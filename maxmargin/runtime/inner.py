"""Compilers that take less time than Numba's: pipelines of their own, as Numba provides for; nothing of it is changed.

Two of Numba's passes look through every function for what loops hardly ever have: `LoopCompiler` leaves them out
where they would find nothing.

Numba optimises every function and makes machine code of it, then does both again in each caller that it is linked into,
and once more in the callers of these. What only compiled code calls needs neither: `InnerCompiler` stops at LLVM's
intermediate code, which takes a sixth to a quarter off the time of a first fit.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes


class LoopCompiler(CompilerBase):
    """Numba's pipeline, without passes that would change nothing."""

    def define_pipelines(self) -> list[PassManager]:
        manager = PassManager("loop")
        manager.passes.extend(
            (self.replacement(step), text)
            for step, text in DefaultPassBuilder.define_nopython_pipeline(self.state).passes
            if not self.is_idle(step)
        )
        manager.finalize()
        return [manager]

    def replacement(self, step: type) -> type:
        """What is run in the place of a pass."""
        return step

    def is_idle(self, step: type) -> bool:
        """Whether a pass has nothing to do: without functions inside, or without arithmetic that makes arrays."""
        if step is InlineClosureLikes:
            return not any(isinstance(constant, CodeType) for constant in self.state.func_id.code.co_consts)
        return step is NopythonRewrites and not self.state.flags.nrt


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


class InnerCompiler(LoopCompiler):
    """The same, with the lowering above."""

    def replacement(self, step: type) -> type:
        return InnerLowering if step is NativeLowering else step
