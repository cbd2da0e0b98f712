"""A kernel as machine code that runs without Numba: one object file with one function for Python.

Numba compiles the kernel.  Around it stands a function that Python can call (``METH_FASTCALL``) ::

    PyObject *entry(PyObject *ndarray, PyObject *const *arguments, Py_ssize_t count)

where ``ndarray`` is NumPy's class.  It reads numbers through Python's C interface, and the data and shape of arrays
where NumPy's C interface has them (``PyArrayObject``, the same since NumPy 1.7), after it has checked that each is an
array of the declared type, number of axes and layout.  It releases Python's lock while the kernel runs.

Numba's kernels take scratch memory from its run-time library.  Here it comes from ``malloc`` instead, so that the
object file needs the C library and Python alone.
"""

# mypy: disable-error-code="no-untyped-call"
# (Numba's insides have no types.)

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime.nrtdynmod import _meminfo_struct_type
from numba.np.arrayobj import populate_array

from solver.selection.kernel_types import ELEMENTS, ENTRY, Record, Signature, Type

# Sums stay in the written order, so that the same input gives the same bits; what is relaxed concerns only
# not-a-number, signed zero and fused multiply-add, none of which a kernel meets.
RELAXED = {"nnan", "nsz", "contract"}

WORD = ir.IntType(64)
INT = ir.IntType(32)
BYTE = ir.IntType(8)
REAL = ir.DoubleType()
POINTER = BYTE.as_pointer()

# Where the fields of PyObject, PyArrayObject and PyArray_Descr begin, in bytes; before them stands Python's head.
HEAD = object.__basicsize__
TYPE_AT, BYTE_ORDER_AT, TYPE_NUMBER_AT = HEAD - 8, HEAD + 10, HEAD + 12
DATA_AT, NDIM_AT, SHAPE_AT, DESCR_AT, FLAGS_AT = HEAD, HEAD + 8, HEAD + 16, HEAD + 40, HEAD + 48
# NPY_ARRAY_C_CONTIGUOUS, _ALIGNED, _WRITEABLE.
CONTIGUOUS, ALIGNED, WRITEABLE = 0x0001, 0x0100, 0x0400

NEEDED = {
    *("malloc", "free", "memset", "memcpy", "memmove", "floor", "ceil", "log2"),
    *("PyLong_AsLongLong", "PyFloat_AsDouble", "PyTuple_GetItem", "PyErr_Occurred", "PyErr_SetString"),
    *("PyLong_FromLongLong", "PyFloat_FromDouble", "PyBool_FromLong", "Py_IncRef"),
    *("PyEval_SaveThread", "PyEval_RestoreThread", "PyExc_TypeError", "PyExc_ArithmeticError", "_Py_NoneStruct"),
}
"""What an object file may ask of the process that loads it."""


def numba_type(kind: Type | Record) -> Any:
    """Numba's name for a type of a kernel's argument or result."""
    if isinstance(kind, Record):
        fields = [numba_type(each) for each in kind.fields]
        if len(set(fields)) == 1:
            return types.NamedUniTuple(fields[0], len(fields), kind.name)
        return types.NamedTuple(fields, kind.name)
    element = getattr(types, kind.element)
    return types.Array(element, kind.ndim, "C", readonly=kind.readonly) if kind.ndim else element


def compile_(function: Any, signature: Signature | None) -> Any:
    """Numba's function; without a signature, one that takes its types from the kernel that calls it."""
    if signature is None:
        return njit(function)
    arguments = [numba_type(each) for each in signature.arguments]
    return njit(numba_type(signature.result)(*arguments), nogil=True, fastmath=RELAXED)(function)


def object_code(compiled: Any, signature: Signature) -> bytes:
    """The object file of a compiled kernel.  Raises ``AssertionError`` where it needs more than ``NEEDED``."""
    (result,) = compiled.overloads.values()
    codegen = result.target_context.codegen()
    with global_compiler_lock:
        library = codegen.create_library(ENTRY)
        module = library.create_ir_module(ENTRY)
        _Entry(module, result, signature).write()
        _define_memory(module)
        library.add_ir_module(module)
        final = library._final_module
        final.link_in(result.library._get_module_for_linking(), preserve=True)
        for each in final.functions:
            if not each.is_declaration and each.name != ENTRY:
                each.linkage = "internal"  # so that LLVM drops what it has put into its callers
        # The library is not finalized, because that would give these functions to Numba's other code in the process.
        library._optimize_final_module()
    final.verify()
    named = (*final.functions, *final.global_variables)
    more = {each.name for each in named if each.is_declaration and not each.name.startswith("llvm.")} - NEEDED
    if more:
        raise AssertionError(f"{compiled.__name__} needs {', '.join(sorted(more))}; write what asks for it as a loop")
    return bytes(codegen._tm.emit_object(final))


class _Entry:
    """Writes the function around one compiled kernel."""

    def __init__(self, module: Any, compiled: Any, signature: Signature) -> None:
        self.module, self.compiled, self.signature = module, compiled, signature
        self.context = compiled.target_context
        function = ir.Function(module, ir.FunctionType(POINTER, [POINTER, POINTER.as_pointer(), WORD]), ENTRY)
        self.ndarray, self.given, self.count = function.args
        self.builder = ir.IRBuilder(function.append_basic_block())

    def write(self) -> None:
        """The whole function: check, unpack, call, give the result."""
        builder, descriptor, wanted = self.builder, self.compiled.fndesc, self.signature.arguments
        counted = builder.icmp_signed("==", self.count, ir.Constant(WORD, len(wanted)))
        self._refuse_unless(counted, f"{len(wanted)} arguments are wanted")
        arguments = [self._argument(index, kind) for index, kind in enumerate(wanted)]
        lock = self._python(POINTER, "PyEval_SaveThread")
        callee = self.context.declare_function(self.module, descriptor)
        status, answer = self.context.call_conv.call_function(
            builder, callee, descriptor.restype, descriptor.argtypes, arguments
        )
        self._python(ir.VoidType(), "PyEval_RestoreThread", lock)
        failed = "it divides by zero, or has no room for its scratch arrays"
        self._refuse_unless(builder.not_(status.is_error), failed, "PyExc_ArithmeticError")
        builder.ret(self._result(answer))

    def _argument(self, index: int, kind: Type | Record) -> Any:
        given = self.builder.load(self.builder.gep(self.given, [ir.Constant(WORD, index)]))
        if isinstance(kind, Type):
            return self._value(kind, given, f"argument {index}")
        fields = []
        for place, each in enumerate(kind.fields):
            field = self._python(POINTER, "PyTuple_GetItem", given, ir.Constant(WORD, place))
            self._leave_if(cgutils.is_null(self.builder, field))
            fields.append(self._value(each, field, f"{kind.name.__name__}.{kind.name._fields[place]}"))  # type: ignore[attr-defined]
        return self.context.make_tuple(self.builder, numba_type(kind), fields)

    def _value(self, kind: Type, given: Any, name: str) -> Any:
        """A number or an array as Numba passes it; leaves where the object is something else."""
        builder = self.builder
        if kind.ndim:
            return self._array(kind, given, name)
        if kind.element == "int64":
            value = self._python(WORD, "PyLong_AsLongLong", given)
            failed = builder.icmp_signed("==", value, ir.Constant(WORD, -1))
        else:
            value = self._python(REAL, "PyFloat_AsDouble", given)
            failed = builder.fcmp_ordered("==", value, ir.Constant(REAL, -1.0))
        with builder.if_then(failed, likely=False):
            self._leave_if(builder.not_(cgutils.is_null(builder, self._python(POINTER, "PyErr_Occurred"))))
        return value

    def _array(self, kind: Type, given: Any, name: str) -> Any:
        builder, type_ = self.builder, numba_type(kind)
        layout = CONTIGUOUS | ALIGNED | (0 if kind.readonly else WRITEABLE)
        message = f"{name} is not a C-ordered {kind.element} array of {kind.ndim} axes"
        self._refuse_unless(builder.icmp_unsigned("==", self._load(given, TYPE_AT, POINTER), self.ndarray), message)
        flags = builder.and_(self._load(given, FLAGS_AT, INT), ir.Constant(INT, layout))
        descr, dtype = self._load(given, DESCR_AT, POINTER), _dtype(kind)
        wanted = (
            (flags, layout),
            (self._load(given, NDIM_AT, INT), kind.ndim),
            (self._load(descr, TYPE_NUMBER_AT, INT), dtype.num),
            (self._load(descr, BYTE_ORDER_AT, BYTE), ord(dtype.byteorder)),
        )
        for found, right in wanted:
            self._refuse_unless(builder.icmp_unsigned("==", found, ir.Constant(found.type, right)), message)
        shape_at = self._load(given, SHAPE_AT, WORD.as_pointer())
        shape = [builder.load(builder.gep(shape_at, [ir.Constant(WORD, axis)])) for axis in range(kind.ndim)]
        strides = [ir.Constant(WORD, dtype.itemsize)]
        for length in reversed(shape[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        array = self.context.make_array(type_)(self.context, builder)
        data = self._load(given, DATA_AT, array.data.type)
        populate_array(array, data=data, shape=shape, strides=strides, itemsize=strides[-1], meminfo=None)
        return array._getvalue()

    def _result(self, answer: Any) -> Any:
        """The result as a Python object."""
        element = self.signature.result.element
        if element == "void":
            none = self._symbol("_Py_NoneStruct", BYTE)
            self._python(ir.VoidType(), "Py_IncRef", none)
            return none
        if element == "boolean":
            return self._python(POINTER, "PyBool_FromLong", self.builder.zext(answer, WORD))
        name = "PyLong_FromLongLong" if element == "int64" else "PyFloat_FromDouble"
        return self._python(POINTER, name, answer)

    def _refuse_unless(self, fine: Any, message: str, error: str = "PyExc_TypeError") -> None:
        with self.builder.if_then(self.builder.not_(fine), likely=False):
            text = self.context.insert_const_string(self.module, f"{self.compiled.fndesc.qualname}: {message}")
            error_class = self.builder.load(self._symbol(error, POINTER))
            self._python(ir.VoidType(), "PyErr_SetString", error_class, text)
            self.builder.ret(ir.Constant(POINTER, None))

    def _leave_if(self, failed: Any) -> None:
        """Give nothing, because Python has set an exception."""
        with self.builder.if_then(failed, likely=False):
            self.builder.ret(ir.Constant(POINTER, None))

    def _python(self, result: Any, name: str, *arguments: Any) -> Any:
        """Call a function of Python's C interface."""
        type_ = ir.FunctionType(result, [each.type for each in arguments])
        return self.builder.call(cgutils.get_or_insert_function(self.module, type_, name), arguments)

    def _symbol(self, name: str, type_: Any) -> Any:
        if name not in self.module.globals:
            ir.GlobalVariable(self.module, type_, name)
        return self.module.globals[name]

    def _load(self, base: Any, offset: int, type_: Any) -> Any:
        place = self.builder.gep(base, [ir.Constant(WORD, offset)])
        return self.builder.load(self.builder.bitcast(place, type_.as_pointer()))


def _dtype(kind: Type) -> np.dtype[Any]:
    return np.dtype(ELEMENTS[kind.element])


def _define_memory(module: Any) -> None:
    """Scratch arrays from ``malloc``: what Numba calls ``NRT_MemInfo_alloc_aligned`` and ``NRT_MemInfo_call_dtor``.

    A block begins with Numba's head (count of references, destructor, its argument, data, size); the data follow,
    aligned.
    """
    malloc = ir.Function(module, ir.FunctionType(POINTER, [WORD]), "malloc")
    free = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "free")
    take = ir.Function(module, ir.FunctionType(POINTER, [WORD, INT]), "NRT_MemInfo_alloc_aligned")
    builder = ir.IRBuilder(take.append_basic_block())
    size, align = take.args[0], builder.zext(take.args[1], WORD)
    head = cgutils.sizeof(builder, _meminfo_struct_type.as_pointer())
    block = builder.call(malloc, [builder.add(builder.add(head, size), align)])
    with builder.if_then(cgutils.is_null(builder, block), likely=False):
        builder.ret(block)
    first = builder.add(builder.add(builder.ptrtoint(block, WORD), head), builder.sub(align, ir.Constant(WORD, 1)))
    data = builder.inttoptr(builder.and_(first, builder.neg(align)), POINTER)
    fields = builder.bitcast(block, _meminfo_struct_type.as_pointer())
    nothing = ir.Constant(POINTER, None)
    for place, value in enumerate((ir.Constant(WORD, 1), nothing, nothing, data, size)):
        builder.store(value, cgutils.gep(builder, fields, 0, place))
    builder.ret(block)
    give = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "NRT_MemInfo_call_dtor")
    builder = ir.IRBuilder(give.append_basic_block())
    builder.call(free, [give.args[0]])
    builder.ret_void()
