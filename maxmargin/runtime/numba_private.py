"""All that is private to Numba, in one place.

What other modules use is documented: ``njit``, ``overload``, ``numba.extending``, ``numba.core.cgutils``, templates of
types, and llvmlite's builder. What is taken from inside of Numba lets loops compile in a fraction of the time, meet
structures by address, and load in milliseconds. It is, member by member:

    CompilerBase.define_pipelines, DefaultPassBuilder.define_nopython_pipeline, PassManager.passes, finalize
                                what a compiler does, as pairs of a pass and a text
    InlineClosureLikes, NopythonRewrites
                                passes that change nothing without functions inside, or without arrays that are counted
    NativeLowering.run_pass     takes a library from `state.library`, leaves a result in ``state["cr"]``, and with the
                                flag `no_compile` makes no machine code
    JITCodeLibrary._linking_libraries, _reload_init, _final_module, _get_module_for_linking, _finalize_dynamic_globals,
    _finalized                  what `finalize` does, besides optimising
    _dynfunc.make_function, insert_user_function, fndesc.lookup_module, CompileResult._replace, env
                                how a function that was compiled becomes known to its callers
    no_cfunc_wrapper, no_cpython_wrapper, _nrt
                                options of ``njit``: no ways in that nobody takes, no references that are counted
    Dispatcher._cache, load_overload, save_overload
                                where a dispatcher looks for what was compiled before, and where it leaves it
    CompileResult._reduce, _rebuild, lifted, library.has_dynamic_globals, serialize.dumps
                                a result as a tuple: a library of (name, form, (machine code, bitcode)), then the rest
    codegen().create_library, JITCodeLibrary._optimize_final_module, enable_object_caching, codegen()._tm.emit_object
                                where LLVM begins to work for the machine at hand, and what it makes
    rtsys.initialize            Numba's counting of references, which functions named ``nrt_...`` belong to
    library.get_pointer_to_function, fndesc.llvm_func_name, CompileResult.entry_point
                                where the code is, for compiled code and for Python
    call_conv.get_function_type, call_function, return_status_propagate, return_user_exc
                                how compiled functions call each other, and pass on errors
    data_model_manager, the fields nitems, itemsize, data, shape and strides of arrays
                                what an array is to compiled code
    numba.np.linalg.ensure_blas, dot_3_mm
                                products of matrices by BLAS, into an array that is there
    codegen().magic_tuple, config.BOUNDSCHECK, OPT, USING_SVML
                                what machine code depends on

`maxmargin.runtime.trial` compiles, keeps, loads and calls a few lines by all of these. Where it fails, or anything
cannot be imported (`missing`), loops go by `maxmargin.runtime.plain` (`maxmargin.runtime.modes` decides).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol

import llvmlite.binding as llvm
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import signature

if TYPE_CHECKING:
    from numba.core.compiler import StateDict
    from numba.core.dispatcher import Dispatcher

missing: ImportError | None = None
try:
    from numba import _dynfunc  # type: ignore[attr-defined]
    from numba.core import serialize
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
    from numba.core.compiler_machinery import PassManager, register_pass
    from numba.core.cpu import CPUTargetOptions
    from numba.core.runtime.nrt import rtsys
    from numba.core.typed_passes import NativeLowering, NopythonRewrites
    from numba.core.untyped_passes import InlineClosureLikes

    for option in ("no_cfunc_wrapper", "no_cpython_wrapper", "_nrt"):
        if not hasattr(CPUTargetOptions, option):
            raise ImportError(f"njit has no option {option}")
except ImportError as error:
    missing = error
    CompilerBase = JITCodeLibrary = NativeLowering = object  # type: ignore[misc, assignment]

    def register_pass(**options: bool) -> Callable[[type], type]:  # type: ignore[misc]
        """Numba's, which is not there."""
        return lambda step: step


_WORD = ir.IntType(64)
in_use = missing is None  # until a trial fails


class Compiled(Protocol):
    """What Numba's compiler returns (`CompileResult`)."""

    library: Any
    fndesc: Any
    lifted: Any
    entry_point: Callable[..., Any]

    def _reduce(self) -> tuple[Any, ...]: ...


class Context(Protocol):
    """What Numba lowers code in (`BaseContext`)."""

    call_conv: Any
    data_model_manager: Any

    def codegen(self) -> Any: ...
    def get_data_type(self, kind: types.Type) -> ir.Type: ...
    def get_abi_sizeof(self, kind: ir.Type) -> int: ...
    def get_dummy_value(self) -> ir.Value: ...


Lowering = Callable[..., ir.Value]


# --- compilers that take less time than Numba's own -----------------------------------------------------------------


class LoopLibrary(JITCodeLibrary):
    """Code that remembers what it was before LLVM knew of the machine: `bitcode`, with all that is linked into it."""

    bitcode = b""

    def _optimize_final_module(self) -> None:
        self.bitcode = self._final_module.as_bitcode()
        super()._optimize_final_module()


@register_pass(mutates_CFG=True, analysis_only=False)
class LoopLowering(NativeLowering):
    """As Numba's own, to a library that remembers."""

    _name = "loop_lowering"

    def run_pass(self, state: StateDict) -> bool:
        state.library = LoopLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().run_pass(state)


class LoopCompiler(CompilerBase):
    """Numba's pipeline, without passes that would change nothing: they look for what loops hardly ever have."""

    def define_pipelines(self) -> list[PassManager]:
        whole = DefaultPassBuilder.define_nopython_pipeline(self.state)
        if not in_use:
            return [whole]
        manager = PassManager("loop")
        manager.passes.extend((self.replacement(step), text) for step, text in whole.passes if not self.is_idle(step))
        manager.finalize()
        return [manager]

    def replacement(self, step: type) -> type:
        """What is run in the place of a pass."""
        return LoopLowering if step is NativeLowering else step

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

    def run_pass(self, state: StateDict) -> bool:
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
    """The compiler of what only compiled code calls: it stops at LLVM's intermediate code.

    Numba optimises every function and makes machine code of it, then does both again in each caller that it is linked
    into, and once more in the callers of these. Without that, a first fit takes a sixth to a quarter less time.
    """

    def replacement(self, step: type) -> type:
        return InnerLowering if step is NativeLowering else step


LOOP_OPTIONS: dict[str, Any] = {"no_cfunc_wrapper": True, "pipeline_class": LoopCompiler}
# What is called by address needs no way in from Python.
ADDRESS_OPTIONS = {**LOOP_OPTIONS, "no_cpython_wrapper": True}
# Other functions of compiled code are only linked into their callers.
INNER_OPTIONS = {**ADDRESS_OPTIONS, "pipeline_class": InnerCompiler}
# Arrays are not counted: compiled code makes none, and those it is given outlive it. Inner functions follow.
UNCOUNTED = {"_nrt": False}


# --- results of compilers, as files keep them -----------------------------------------------------------------------


def keep_in(dispatcher: Dispatcher, cache: object) -> None:
    """Let a dispatcher ask `cache.load_overload` before it compiles, and tell `cache.save_overload` after it has."""
    if not hasattr(dispatcher, "_cache"):
        raise AttributeError("Dispatchers have no _cache.")
    dispatcher._cache = cache


def can_be_kept(compiled: Compiled) -> bool:
    """Whether code holds no address of this process."""
    return not compiled.lifted and not compiled.library.has_dynamic_globals


def dump(compiled: Compiled) -> bytes:
    """A compiled function, without what only a caller that inlines it would need, or a reader: most of Numba's form."""
    (name, _, (machine_code, _)), *others = compiled._reduce()
    return _join(name, machine_code, compiled.library._final_module, _dump_others(others))


def dump_bitcode(compiled: Compiled) -> bytes:
    """A compiled function as it was before LLVM knew of the machine: it is for all that have the same versions."""
    (name, *_), *others = compiled._reduce()
    return pickle.dumps((name, compiled.library.bitcode, _dump_others(others)))


def finish(content: bytes, context: Context) -> bytes:
    """What `dump` makes of a function on this machine, from what `dump_bitcode` has made of it on any."""
    name, bitcode, others = pickle.loads(content)
    library = context.codegen().create_library(name)
    library._final_module = llvm.parse_bitcode(bitcode)
    library._final_module.triple = str(machine(context)[0])
    library._optimize_final_module()
    module = library._final_module
    module.verify()
    return _join(name, context.codegen()._tm.emit_object(module), module, others)


def load(content: bytes, context: Context) -> Compiled:
    """What `dump` has made; Numba's counting of references, 20 MB, is only set up for what needs it."""
    counts_references, library, others = pickle.loads(content)
    if counts_references:
        rtsys.initialize(context)
    return CompileResult._rebuild(context, library, *pickle.loads(others))


def _dump_others(others: list[object]) -> bytes:
    """The rest of a result, without a listing of the types of variables."""
    return serialize.dumps(["" if isinstance(item, str) else item for item in others])


def _join(name: str, machine_code: bytes, module: llvm.ModuleRef, others: bytes) -> bytes:
    """Machine code with the rest; of the code for inlining the names of functions stay, which Numba looks up."""
    defined = [function.name for function in module.functions if not function.is_declaration]
    outline = llvm.parse_assembly("\n".join(f'define void @"{name}"() {{ ret void }}' for name in defined))
    counts_references = any(function.name.lower().startswith("nrt_") for function in module.functions)
    return pickle.dumps((counts_references, (name, "object", (machine_code, outline.as_bitcode())), others))


def machine(context: Context) -> tuple[object, ...]:
    """The machine that code is made for: its kind and system, then its processor."""
    return context.codegen().magic_tuple()


def kind_of_machine(context: Context) -> str:
    """The kind and system alone, whatever the version of the system, which is of no matter to LLVM."""
    return str(machine(context)[0]).rstrip("0123456789.")


def settings() -> list[object]:
    """What else machine code depends on."""
    return [getattr(numba.config, name, None) for name in ("BOUNDSCHECK", "OPT", "USING_SVML")]


# --- inside of compiled code ----------------------------------------------------------------------------------------


def address_of(compiled: Compiled) -> int:
    """Where the code of a compiled function is."""
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


def call_address(
    context: Context,
    builder: ir.IRBuilder,
    address: ir.Value,
    result: types.Type,
    arguments: Sequence[types.Type],
    values: Sequence[ir.Value],
) -> ir.Value:
    """Call the compiled function at an address, by Numba's own convention, and pass on its errors."""
    convention = context.call_conv
    callee = builder.inttoptr(address, convention.get_function_type(result, arguments).as_pointer())
    status, value = convention.call_function(builder, callee, result, arguments, values)
    with cgutils.if_unlikely(builder, status.is_error):
        convention.return_status_propagate(builder, status)
    return value


def raise_if_null(context: Context, builder: ir.IRBuilder, address: ir.Value, message: str) -> None:
    """Raise a RuntimeError where an address is 0."""
    with cgutils.if_unlikely(builder, cgutils.is_null(builder, address)):
        context.call_conv.return_user_exc(builder, RuntimeError, (message,))


def make_array(
    context: Context, builder: ir.IRBuilder, array_type: types.Array, address: ir.Value, shape: Sequence[ir.Value]
) -> ir.Value:
    """A C-contiguous array at an address, which owns nothing."""
    data_type = context.get_data_type(array_type.dtype)
    itemsize = _WORD(context.get_abi_sizeof(data_type))
    n_items, strides = shape[0], [itemsize]
    for size in shape[:0:-1]:
        n_items = builder.mul(n_items, size)
        strides.insert(0, builder.mul(strides[0], size))
    fields = {
        "nitems": n_items,
        "itemsize": itemsize,
        "data": builder.inttoptr(address, data_type.as_pointer()),
        "shape": cgutils.pack_array(builder, shape, ty=_WORD),
        "strides": cgutils.pack_array(builder, strides, ty=_WORD),
    }
    model = context.data_model_manager[array_type]
    array = ir.Constant(model.get_value_type(), None)  # zeros: nothing to count
    for name, value in fields.items():
        array = model.set(builder, array, value, name)
    return array


def multiply_matrices(
    context: Context, builder: ir.IRBuilder, arrays: Sequence[types.Array], values: Sequence[ir.Value]
) -> None:
    """Write the product of the first two of three matrices into the third, by BLAS."""
    from numba.np.linalg import dot_3_mm, ensure_blas  # slow to import, and only needed to compile

    ensure_blas()
    dot_3_mm(context, builder, signature(arrays[2], *arrays), values)
