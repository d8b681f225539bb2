"""LiteRT behind a line protocol: one JSON object per line on standard input, one per answer.

{"do": "load", "model": FILE, "threads": N, "cut": null | {"before": N, "from": [..], "to": [..]},
 "inputs": [{"name": TENSOR, "file": FILE}]}  -> {"seconds": S}
{"do": "run", "count": N}                     -> {"ns": [..]}, around each invoke() alone
{"do": "outputs", "names": [..], "folder": DIR} -> {"files": [..]}, raw bytes
{"do": "unload"}                              -> {}

The first line printed says who is here: {"package": .., "version": ..}. A request that fails is
answered with {"error": ..}.
"""

import gc
import json
import os
import sys
import time


def find_package():
    """The interpreter's class, and where it comes from."""
    try:
        from ai_edge_litert.interpreter import Interpreter

        return Interpreter, "ai-edge-litert"
    except ImportError:
        pass
    try:
        import tensorflow as tf

        return tf.lite.Interpreter, "tensorflow"
    except ImportError:
        pass
    from tflite_runtime.interpreter import Interpreter

    return Interpreter, "tflite-runtime"


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
    """One model at a time."""

    def __init__(self, interpreter_class):
        self.interpreter_class = interpreter_class
        self.interpreter = None

    def load(self, request):
        import numpy

        self.unload(request)
        source = {"model_path": request["model"]}
        if request["cut"] is not None:
            source = {"model_content": cut_model(request["model"], request["cut"])}
        started = time.perf_counter()
        # Without a word about delegates the package uses XNNPACK.
        interpreter = self.interpreter_class(num_threads=request["threads"], **source)
        interpreter.allocate_tensors()
        seconds = time.perf_counter() - started
        details = {detail["name"]: detail for detail in interpreter.get_input_details()}
        for given in request["inputs"]:
            detail = details.pop(given["name"])
            values = numpy.fromfile(given["file"], dtype=detail["dtype"])
            interpreter.set_tensor(detail["index"], values.reshape(detail["shape"]))
        if details:
            raise ValueError("inputs without a value: " + ", ".join(details))
        self.interpreter = interpreter
        return {"seconds": seconds}

    def run(self, request):
        invoke = self.interpreter.invoke
        clock = time.perf_counter_ns
        times = []
        gc.disable()
        for _ in range(request["count"]):
            started = clock()
            invoke()
            times.append(clock() - started)
        gc.enable()
        return {"ns": times}

    def outputs(self, request):
        import numpy

        details = {detail["name"]: detail for detail in self.interpreter.get_output_details()}
        files = []
        for at, name in enumerate(request["names"]):
            values = self.interpreter.get_tensor(details[name]["index"])
            if values.dtype == numpy.int64:
                values = values.astype(numpy.int32)
            path = os.path.join(request["folder"], f"output-{at}")
            values.tofile(path)
            files.append(path)
        return {"files": files}

    def unload(self, _request):
        self.interpreter = None
        gc.collect()
        return {}


def say(answer):
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def main():
    try:
        interpreter_class, package = find_package()
    except ImportError as error:
        say({"error": str(error)})
        return
    from importlib import metadata

    say({"package": package, "version": metadata.version(package)})
    session = Session(interpreter_class)
    handlers = {
        "load": session.load,
        "run": session.run,
        "outputs": session.outputs,
        "unload": session.unload,
    }
    for line in sys.stdin:
        request = json.loads(line)
        try:
            say(handlers[request["do"]](request))
        except Exception as error:  # every failure is the other side's to judge
            say({"error": f"{type(error).__name__}: {error}"})


main()
