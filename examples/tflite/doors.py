"""The two doors through which TensorFlow Lite for Python comes to our devices.

Which one it is, the installed package decides: TensorFlow 2.4 has a delegate for NNAPI inside, which loads
libneuralnetworks.so; LiteRT and tflite-runtime load libburst_delegate.so, an external delegate.
"""
import ctypes
import os
import struct
import sys

LIBRARY = "libneuralnetworks.so"
EXTERNAL_DELEGATE = "libburst_delegate.so"
# The wheel's module that TensorFlow Lite lies in, and the delegate's functions there. They are not exported, but the
# module has its symbol table.
MODULE = "_pywrap_tensorflow_interpreter_wrapper"
SHARED_DELEGATE = "_ZN6tflite13NnApiDelegateEv"
OWN_DELEGATE = "_ZN6tflite21StatefulNnApiDelegateC1ENS0_7OptionsE"
# Far more than the delegate's object takes in any release that was seen.
DELEGATE_BYTES = 8192


def open_door(folder, device=None):
    """The runtime that is installed here, and what makes its delegate; this program may be started again for it.

    `folder` has the library; None: where the system finds it. `device`: the one that runs nodes, by name.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        from ai_edge_litert import interpreter as runtime
        return Door("LiteRT", runtime, lambda: external(runtime, folder, device))
    except ImportError:
        pass
    try:
        from tflite_runtime import interpreter as runtime
        return Door("tflite-runtime", runtime, lambda: external(runtime, folder, device))
    except ImportError:
        pass
    if folder:
        start_with_library(folder)
    try:
        from tensorflow.lite.python import interpreter as runtime
    except ImportError:
        sys.exit("this Python has neither LiteRT nor TensorFlow Lite; examples/tflite/setup makes one that has")
    return Door("TensorFlow Lite over NNAPI", runtime, lambda: NnapiDelegate(device))


class Door:
    """A runtime, and its delegate."""

    def __init__(self, name, runtime, delegate):
        self.name = name
        self.runtime = runtime
        self._delegate = delegate

    def interpreter(self, model, with_delegate, reference=False):
        """An interpreter of a model, a path or the bytes. `reference`: with plain kernels, where the runtime has them."""
        options = {"experimental_delegates": [self._delegate()]} if with_delegate else {}
        if reference and hasattr(self.runtime, "OpResolverType"):
            options["experimental_op_resolver_type"] = self.runtime.OpResolverType.BUILTIN_REF
        options["model_content" if isinstance(model, bytes) else "model_path"] = model
        interpreter = self.runtime.Interpreter(**options)
        interpreter.allocate_tensors()
        remove_names_of_shared_memory()
        return interpreter


def remove_names_of_shared_memory():
    """The delegate of TensorFlow 2.4 makes its memories as files of /dev/shm and never removes their names."""
    with open("/proc/self/maps") as maps:
        mapped = {line.split(None, 5)[5].strip() for line in maps if "/dev/shm/-tmp-file" in line}
    for path in mapped:
        if os.path.exists(path):
            os.unlink(path)


def external(runtime, folder, device):
    """The delegate that a runtime of today loads."""
    path = os.path.join(folder or ".", EXTERNAL_DELEGATE)
    if not os.path.isfile(path):
        sys.exit("%s: there is no such file" % path)
    return runtime.load_delegate(path, {"device": device} if device else {})


def start_with_library(folder):
    """The loader reads its search path when a program starts: this one starts again with the folder in it."""
    folder = os.path.abspath(folder)
    if not os.path.isfile(os.path.join(folder, LIBRARY)):
        sys.exit("%s: there is no %s" % (folder, LIBRARY))
    path = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    if path[0] == folder:
        return
    os.environ["LD_LIBRARY_PATH"] = ":".join([folder] + [other for other in path if other])
    os.execv(sys.executable, [sys.executable] + sys.argv)


class Options(ctypes.Structure):
    """What the delegate's constructor takes, as TensorFlow Lite 2.4 has it."""

    _fields_ = [
        ("preference", ctypes.c_int32),
        ("device", ctypes.c_char_p),
        ("cache_folder", ctypes.c_char_p),
        ("model_token", ctypes.c_char_p),
        ("without_reference_device", ctypes.c_bool),
        ("most_partitions", ctypes.c_int32),
        ("half_precision", ctypes.c_bool),
        ("priority", ctypes.c_int32),
        ("longest_compilation_ns", ctypes.c_uint64),
        ("longest_execution_ns", ctypes.c_uint64),
        ("longest_loop_ns", ctypes.c_uint64),
        ("dynamic_dimensions", ctypes.c_bool),
    ]


def symbols(path, names):
    """Offsets of these symbols of a module: from section .symtab of an ELF file for 64 bits."""
    with open(path, "rb") as file:
        content = file.read()
    if content[:6] != b"\x7fELF\x02\x01":
        sys.exit("%s: this needs a machine with 64 bits, little end first" % path)
    (table,) = struct.unpack_from("<Q", content, 40)
    size, count = struct.unpack_from("<HH", content, 58)
    sections = [struct.unpack_from("<IIQQQQII", content, table + number * size) for number in range(count)]
    found = {}
    for _, kind, _, _, offset, length, link, _ in sections:
        if kind != 2:
            continue
        texts = sections[link][4]
        for at in range(offset, offset + length, 24):
            name, _, _, _, value = struct.unpack_from("<IBBHQ", content, at)
            start = texts + name
            text = content[start:content.index(b"\0", start)].decode()
            if value and text in names:
                found[text] = value
    missing = [name for name in names if name not in found]
    if missing:
        sys.exit("%s: has no delegate for NNAPI (%s)" % (path, ", ".join(missing)))
    return found


def base_of(path):
    """Where the file was loaded."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) == 6 and int(fields[2], 16) == 0 and os.path.realpath(fields[5].strip()) == path:
                return int(fields[0].split("-")[0], 16)
    sys.exit("%s: is not loaded" % path)


class NnapiDelegate:
    """The wheel's own delegate in the form in which its interpreter takes delegates."""

    def __init__(self, device=None):
        modules = [module for name, module in list(sys.modules.items()) if name.endswith(MODULE)]
        path = os.path.realpath(modules[0].__file__)
        offsets = symbols(path, [SHARED_DELEGATE, OWN_DELEGATE])
        base = base_of(path)
        if device is None:
            self.address = ctypes.CFUNCTYPE(ctypes.c_void_p)(base + offsets[SHARED_DELEGATE])()
            return
        self.options = Options(preference=-1, device=device.encode(), most_partitions=3, priority=100)
        self.object = ctypes.create_string_buffer(DELEGATE_BYTES)
        self.address = ctypes.addressof(self.object)
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, Options)(base + offsets[OWN_DELEGATE])(self.address, self.options)

    def _get_native_delegate_pointer(self):
        return self.address
