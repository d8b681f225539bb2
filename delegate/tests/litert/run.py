"""Runs a model with the delegate and without, and prints what came of it as JSON.

    run.py LIBRARY MODEL OPTIONS SHAPE

OPTIONS is a JSON object; SHAPE is the shape of the first input, given after the delegate was applied, or [].
Whichever runtime this Python has is used. It is compared with its own reference kernels: the fast ones round
otherwise.
"""
import json
import sys

import numpy as np

try:
    from ai_edge_litert import interpreter as runtime
    package = "ai_edge_litert"
except ImportError:
    try:
        from tflite_runtime import interpreter as runtime
        package = "tflite_runtime"
    except ImportError:
        from tensorflow.lite.python import interpreter as runtime
        package = "tensorflow"


def main(library, model, options, shape):
    if model == "":
        return {"package": package}
    try:
        delegate = runtime.load_delegate(library, options)
    except ValueError as error:
        return {"package": package, "refused": str(error)}
    reference = runtime.OpResolverType.BUILTIN_REF
    interpreters = [
        runtime.Interpreter(model_path=model, experimental_op_resolver_type=reference, experimental_delegates=delegates)
        for delegates in ([], [delegate])
    ]
    for interpreter in interpreters:
        if shape:
            interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], shape)
        interpreter.allocate_tensors()
    random = np.random.RandomState(7)
    outputs = []
    # States go from one execution to the next; after a reset they begin again.
    for step in range(4):
        if step == 3:
            for interpreter in interpreters:
                interpreter.reset_all_variables()
        for given in interpreters[0].get_input_details():
            kind = np.dtype(given["dtype"])
            if kind == np.float32:
                value = random.uniform(-1, 1, given["shape"])
            else:
                value = random.randint(0, 100, given["shape"])
            for interpreter in interpreters:
                interpreter.set_tensor(given["index"], value.astype(kind))
        for interpreter in interpreters:
            interpreter.invoke()
        for made in interpreters[0].get_output_details():
            want, found = [one.get_tensor(made["index"]).astype(np.float64) for one in interpreters]
            apart = np.abs(want - found)
            outputs.append({
                "type": np.dtype(made["dtype"]).name,
                "elements": int(want.size),
                "apart": float(apart.max()) if apart.size else 0.0,
                "largest": float(np.abs(want).max()) if want.size else 0.0,
            })
    return {"package": package, "outputs": outputs}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4]))))
