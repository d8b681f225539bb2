"""Executes a model with the delegate once for each line that it reads, and prints for each what came of it.

    stepwise.py LIBRARY MODEL OPTIONS

"same" where it is what the runtime's plain kernels compute, else what differs or what the runtime said; before the
first, "ready".
"""
import json
import sys

import numpy as np

from run import runtime


def main(library, model, options):
    reference = runtime.OpResolverType.BUILTIN_REF
    delegate = runtime.load_delegate(library, options)
    own, ours = [
        runtime.Interpreter(model_path=model, experimental_op_resolver_type=reference, experimental_delegates=delegates)
        for delegates in ([], [delegate])
    ]
    for interpreter in (own, ours):
        interpreter.allocate_tensors()
    random = np.random.RandomState(7)
    print("ready", flush=True)
    for _ in sys.stdin:
        for given in own.get_input_details():
            limits = np.iinfo(given["dtype"])
            value = random.randint(limits.min, limits.max + 1, given["shape"]).astype(given["dtype"])
            for interpreter in (own, ours):
                interpreter.set_tensor(given["index"], value)
        own.invoke()
        try:
            ours.invoke()
        except RuntimeError as error:
            print(" ".join(str(error).split()), flush=True)
            continue
        apart = [
            int(np.abs(own.get_tensor(one["index"]).astype(np.int64) - ours.get_tensor(other["index"])).max())
            for one, other in zip(own.get_output_details(), ours.get_output_details())
        ]
        print("same" if not any(apart) else "apart by %s" % apart, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
