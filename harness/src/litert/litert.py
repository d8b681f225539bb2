"""LiteRT behind two pipes. A request is one JSON object in a line on standard input, then the bytes of what it
gives, as long as its "bytes" say; an answer likewise on standard output.

{"do": "load", "session": S, "model": FILE, "threads": N, "reference": BOOL,
 "cut": null | {"before": N, "from": [..], "to": [..]}, "outputs": [{"name": TENSOR, "type": T}]}
    -> {"seconds": S}
{"do": "give", "session": S, "inputs": [TENSOR, ..], "bytes": [N, ..], "begins": BOOL}  -> {}
{"do": "run", "session": S, "count": N}  -> {"ns": [..]}, around each invoke() alone
{"do": "outputs", "session": S}          -> {"bytes": [N, ..]}, each output in the type that "load" named
{"do": "memory"}                         -> {"kib": N}, the most that this process ever had
{"do": "unload", "session": S}           -> {}

States go from one execution to the next, unless "begins" says that a sequence does. The first line printed says
who is here: {"package": .., "version": ..}. A request that fails is answered with {"error": ..}.
"""

import gc
import json
import sys
import time


def find_package():
    """The module with the interpreter, and where it comes from."""
    try:
        from ai_edge_litert import interpreter

        return interpreter, "ai-edge-litert"
    except ImportError:
        pass
    try:
        from tensorflow.lite.python import interpreter

        return interpreter, "tensorflow"
    except ImportError:
        pass
    from tflite_runtime import interpreter

    return interpreter, "tflite-runtime"


def schema():
    """The classes that take a model file apart and put it together."""
    try:
        from ai_edge_litert import schema_py_generated
    except ImportError:
        from tensorflow.lite.python import schema_py_generated
    return schema_py_generated


def cut_model(path, cut):
    """The bytes of a model without its first operators, from and to the named tensors."""
    import flatbuffers

    classes = schema()
    with open(path, "rb") as file:
        content = file.read()
    model = classes.ModelT.InitFromObj(classes.Model.GetRootAsModel(content, 0))
    graph = model.subgraphs[0]
    index = {tensor.name.decode(): at for at, tensor in enumerate(graph.tensors)}
    graph.operators = graph.operators[cut["before"] :]
    graph.inputs = [index[name] for name in cut["from"]]
    graph.outputs = [index[name] for name in cut["to"]]
    model.signatureDefs = None
    builder = flatbuffers.Builder(len(content))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


class Session:
    """A model that is loaded."""

    def __init__(self, package, request):
        source = {"model_path": request["model"]}
        if request["cut"] is not None:
            source = {"model_content": cut_model(request["model"], request["cut"])}
        if request["reference"]:
            source["experimental_op_resolver_type"] = package.OpResolverType.BUILTIN_REF
        started = time.perf_counter()
        # Without a word about delegates or kernels the package uses XNNPACK.
        self.interpreter = package.Interpreter(num_threads=request["threads"], **source)
        self.interpreter.allocate_tensors()
        self.seconds = time.perf_counter() - started
        self.outputs = request["outputs"]
        self.is_given = False

    def give(self, request, given):
        import numpy

        if request["begins"]:
            self.interpreter.reset_all_variables()
        details = {detail["name"]: detail for detail in self.interpreter.get_input_details()}
        for name, content in zip(request["inputs"], given):
            detail = details.pop(name)
            values = numpy.frombuffer(content, dtype=detail["dtype"])
            self.interpreter.set_tensor(detail["index"], values.reshape(detail["shape"]))
        if details:
            raise ValueError("inputs without a value: " + ", ".join(details))
        self.is_given = True

    def run(self, count):
        if not self.is_given:
            raise ValueError("there are no inputs yet")
        invoke = self.interpreter.invoke
        clock = time.perf_counter_ns
        times = []
        gc.disable()
        for _ in range(count):
            started = clock()
            invoke()
            times.append(clock() - started)
        gc.enable()
        return times

    def read(self):
        details = {detail["name"]: detail for detail in self.interpreter.get_output_details()}
        found = []
        for output in self.outputs:
            values = self.interpreter.get_tensor(details[output["name"]]["index"])
            wanted = values.astype(output["type"])
            # Numbers of classes may be floats or 64 bits long; nothing else may change.
            if values.dtype != wanted.dtype and not (wanted.astype(values.dtype) == values).all():
                raise ValueError(output["name"] + " is no " + output["type"])
            found.append(wanted.tobytes())
        return found


class Server:
    """What is asked for by "do"."""

    def __init__(self, package):
        self.package = package
        self.sessions = {}

    def load(self, request, _given):
        self.unload(request, [])
        session = Session(self.package, request)
        self.sessions[request["session"]] = session
        return {"seconds": session.seconds}, []

    def give(self, request, given):
        self.sessions[request["session"]].give(request, given)
        return {}, []

    def run(self, request, _given):
        return {"ns": self.sessions[request["session"]].run(request["count"])}, []

    def outputs(self, request, _given):
        found = self.sessions[request["session"]].read()
        return {"bytes": [len(one) for one in found]}, found

    def memory(self, _request, _given):
        import resource

        return {"kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}, []

    def unload(self, request, _given):
        self.sessions.pop(request["session"], None)
        gc.collect()
        return {}, []


def say(answer, parts=()):
    out = sys.stdout.buffer
    out.write(json.dumps(answer).encode() + b"\n")
    for part in parts:
        out.write(part)
    out.flush()


def main():
    try:
        package, name = find_package()
    except ImportError as error:
        say({"error": str(error)})
        return
    from importlib import metadata

    say({"package": name, "version": metadata.version(name)})
    server = Server(package)
    asked = sys.stdin.buffer
    for line in iter(asked.readline, b""):
        request = json.loads(line)
        given = [asked.read(count) for count in request.get("bytes", [])]
        try:
            say(*getattr(server, request["do"])(request, given))
        except Exception as error:  # every failure is the other side's to judge
            say({"error": f"{type(error).__name__}: {error}"})


main()
