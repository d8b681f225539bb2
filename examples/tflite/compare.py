#!/usr/bin/env python3
"""Computes random inputs with a runtime's own kernels and with its delegate for our devices, and says where the two differ.

    compare.py MODEL.tflite --library FOLDER [--operators]

Each input begins with the states of a model as they are after loading. LiteRT and tflite-runtime are asked for their
plain kernels; TensorFlow 2.4 has only its fast ones. With --operators every operator's outputs are compared, and the
first that differs is named. Exit status: 0 where all outputs are within the tolerance, else 1.
"""
import argparse
import sys
import time

from doors import open_door


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--library", required=True, help="folder of the library")
    parser.add_argument("--device", help="device of the library, by name; default: the library chooses")
    parser.add_argument("--inputs", type=int, default=3, help="how many random inputs (default 3)")
    parser.add_argument("--input", help="bytes of the first input, from a file, in place of random ones")
    parser.add_argument("--runs", type=int, default=0, help="timed runs of each, in turns (default none)")
    parser.add_argument("--operators", action="store_true", help="compare what each operator computes")
    parser.add_argument("--units", type=int, default=1, help="tolerance of integers (default 1)")
    parser.add_argument("--abs", type=float, default=1e-4, help="tolerance of floats (default 1e-4)")
    parser.add_argument("--rel", type=float, default=1e-3, help="tolerance of floats, relative (default 1e-3)")
    return parser.parse_args()


def with_all_outputs(path):
    """The model with the outputs of every operator as its own, and (operator, tensor) for each of those."""
    import flatbuffers
    try:
        from ai_edge_litert import schema_py_generated as schema
    except ImportError:
        try:
            from tensorflow.lite.python import schema_py_generated as schema
        except ImportError:
            sys.exit("--operators: this package has no reader for models")
    with open(path, "rb") as file:
        content = file.read()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAsModel(content, 0))
    graph = model.subgraphs[0]
    kinds = {code: name for name, code in vars(schema.BuiltinOperator).items() if isinstance(code, int)}
    made = []
    for number, operator in enumerate(graph.operators):
        code = model.operatorCodes[operator.opcodeIndex]
        kind = kinds[max(code.builtinCode, code.deprecatedBuiltinCode)]
        made += [("operator %d, %s" % (number, kind), int(tensor)) for tensor in operator.outputs]
    graph.outputs = [tensor for _, tensor in made]
    builder = flatbuffers.Builder(len(content))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output()), made


def given(details, random, path):
    """Values for every input."""
    import numpy
    values = []
    for number, each in enumerate(details):
        kind, shape = numpy.dtype(each["dtype"]), each["shape"]
        if number == 0 and path:
            values.append(numpy.fromfile(path, kind).reshape(shape))
        elif kind == numpy.float32:
            values.append(random.uniform(-1, 1, shape).astype(kind))
        elif kind.itemsize == 1 and kind != numpy.bool_:
            limits = numpy.iinfo(kind)
            values.append(random.randint(limits.min, limits.max + 1, shape).astype(kind))
        else:
            values.append(random.randint(0, 2, shape).astype(kind))
    return values


def start(interpreter, values):
    for each, value in zip(interpreter.get_input_details(), values):
        interpreter.set_tensor(each["index"], value)


def difference(want, got, arguments):
    """What to say of two tensors, and whether they are within the tolerance."""
    import numpy
    if want.shape != got.shape or want.dtype != got.dtype:
        return "%s %s for %s %s" % (got.dtype, got.shape, want.dtype, want.shape), False
    apart = numpy.abs(want.astype(numpy.float64) - got.astype(numpy.float64)).ravel()
    if not apart.any():
        return "all %d equal" % apart.size, True
    if want.dtype == numpy.float32:
        fits = numpy.isclose(got, want, rtol=arguments.rel, atol=arguments.abs, equal_nan=True).all()
    else:
        fits = (apart <= arguments.units).all()
    first = int(apart.nonzero()[0][0])
    said = "%d of %d differ, at most by %g; the first at %d: %s for %s" % (
        (apart != 0).sum(), apart.size, apart.max(), first, got.ravel()[first], want.ravel()[first])
    return said, bool(fits)


def timed(interpreters, values, runs):
    """The median of each, in milliseconds; they take turns."""
    took = [[], []]
    for _ in range(runs):
        for interpreter, list_of_its in zip(interpreters, took):
            start(interpreter, values)
            begin = time.perf_counter()
            interpreter.invoke()
            list_of_its.append(time.perf_counter() - begin)
    return [sorted(each)[len(each) // 2] * 1000 for each in took]


def main():
    arguments = parse()
    door = open_door(arguments.library, arguments.device)
    import numpy

    model, names = arguments.model, None
    if arguments.operators:
        model, names = with_all_outputs(arguments.model)
    own = door.interpreter(model, False, reference=True)
    ours = door.interpreter(model, True)
    if names is None:
        names = [("output %d" % number, None) for number, _ in enumerate(own.get_output_details())]
    random, good, named = numpy.random.RandomState(1), True, False
    for number in range(1 if arguments.input else arguments.inputs):
        values = given(own.get_input_details(), random, arguments.input)
        for interpreter in (own, ours):
            interpreter.reset_all_variables()
            start(interpreter, values)
            interpreter.invoke()
        for (name, _), mine, other in zip(names, ours.get_output_details(), own.get_output_details()):
            said, fits = difference(own.get_tensor(other["index"]), ours.get_tensor(mine["index"]), arguments)
            good = good and fits
            mark = "" if fits else "  <- over the tolerance" if named else "  <- the first over the tolerance"
            named = named or not fits
            print("input %d, %s: %s%s" % (number, name, said, mark))
    if arguments.runs:
        # Not the plain kernels, which nobody waits for.
        fast = door.interpreter(model, False)
        print("%s alone %.3f ms, with the delegate %.3f ms" % ((door.name,) + tuple(
            timed((fast, ours), values, arguments.runs))))
    print("the same within the tolerance" if good else "not the same")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
