#!/usr/bin/env python3
"""Says what a picture shows, with TensorFlow Lite or LiteRT as it comes, and its delegate for our devices.

    classify.py MODEL.tflite PICTURE --library FOLDER [--labels FILE]

FOLDER holds libneuralnetworks.so or libburst_delegate.so, whichever the installed package takes. With --plain the package
computes by itself, for comparison. docs/CLIENTS.md says how to come by Python packages that this runs with.
"""
import argparse
import time

from doors import open_door


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a classifier of pictures")
    parser.add_argument("picture", help="whatever Pillow reads")
    parser.add_argument("--library", help="folder of the library; default: where the system finds it")
    parser.add_argument("--labels", help="file with a name in each line")
    parser.add_argument("--device", help="device of the library, by name; default: the library chooses")
    parser.add_argument("--top", type=int, default=3, help="how many answers (default 3)")
    parser.add_argument("--plain", action="store_true", help="without the delegate")
    return parser.parse_args()


def fitted(path, details):
    """The middle of a picture in the shape and type of the model's input."""
    import numpy
    from PIL import Image

    _, height, width, _ = details["shape"]
    picture = Image.open(path).convert("RGB")
    scale = max(width / picture.width, height / picture.height)
    picture = picture.resize((round(picture.width * scale), round(picture.height * scale)), Image.BILINEAR)
    left, top = (picture.width - width) // 2, (picture.height - height) // 2
    pixels = numpy.asarray(picture.crop((left, top, left + width, top + height)))
    if details["dtype"] == numpy.uint8:
        values = pixels
    elif details["dtype"] == numpy.int8:
        values = (pixels.astype(numpy.int16) - 128).astype(numpy.int8)
    else:
        values = (pixels.astype(numpy.float32) - 127.5) / 127.5
    return values[None]


def main():
    arguments = parse()
    door = open_door(None if arguments.plain else arguments.library, arguments.device)
    interpreter = door.interpreter(arguments.model, not arguments.plain)
    (source,) = interpreter.get_input_details()
    target = interpreter.get_output_details()[0]
    interpreter.set_tensor(source["index"], fitted(arguments.picture, source))
    begin = time.perf_counter()
    interpreter.invoke()
    took = time.perf_counter() - begin
    scores = interpreter.get_tensor(target["index"])[0].astype("float64")
    scale, zero = target["quantization"]
    if scale:
        scores = (scores - zero) * scale
    names = []
    if arguments.labels:
        with open(arguments.labels) as file:
            names = file.read().splitlines()
    for number in scores.argsort()[::-1][: arguments.top]:
        name = names[number] if number < len(names) else "class %d" % number
        print("%6.1f %%  %s" % (scores[number] * 100, name))
    print("%.2f ms, %s, %s" % (took * 1000, door.name, "without delegate" if arguments.plain else "with delegate"))


if __name__ == "__main__":
    main()
