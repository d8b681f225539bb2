#!/usr/bin/env python3
"""Trains the built-in model on pictures that the synthetic camera draws.

Writes, beside this script: shapes.tflite (the model), shapes.json (what was measured),
shapes.golden.bin and shapes.golden.json (held-out inputs with the answers of the TFLite reference
kernels). README.md describes the files and how to run this.
"""

import argparse
import hashlib
import json
import pathlib
import subprocess
import tempfile
import time

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import (
    convert_variables_to_constants_v2 as freeze)

HERE = pathlib.Path(__file__).resolve().parent
SIDE = 64  # pixels; the model's input is SIDE x SIDE x 3

# Sets of pictures: (seed of the camera, how many, frames of one stream instead of samples).
SETS = {
    "train": (11, 40_000, False),
    "test": (12, 5_000, False),
    "stream": (13, 6_000, True),
}
WEIGHTS_SEED = 20
EPOCHS = 18
BATCH = 128
PEAK_RATE = 4e-3
CALIBRATION = 400  # training pictures that the quantiser sees
GOLDENS_UNSURE = 14  # beside one of each class
WINDOW = 300  # frames of a short run of the main command

LEAST_ACCURACY = 0.97
MOST_LINEAR_ACCURACY = 0.60
MOST_BYTES = 300_000
ALLOWED_OPS = {
    "CONV_2D", "DEPTHWISE_CONV_2D", "AVERAGE_POOL_2D", "MAX_POOL_2D", "MEAN", "RESHAPE", "ADD",
    "FULLY_CONNECTED", "SOFTMAX", "QUANTIZE",
}


def draw(folder):
    """Draws all sets; returns {name: (images, labels)} and the class names."""
    sets = {}
    for name, (seed, count, stream) in SETS.items():
        command = ["cargo", "run", "--quiet", "--release", "-p", "burst-camera", "--example", "draw"]
        command += ["--", "--out", folder, "--name", name, "--seed", str(seed)]
        command += ["--count", str(count), "--size", str(SIDE)]
        subprocess.run(command + (["--stream"] if stream else []), check=True, cwd=HERE.parent)
        path = pathlib.Path(folder)
        images = np.fromfile(path / f"{name}.images.u8", np.uint8).reshape(count, SIDE, SIDE, 3)
        sets[name] = images, np.fromfile(path / f"{name}.labels.u8", np.uint8)
    return sets, (pathlib.Path(folder) / "labels.txt").read_text().splitlines()


def convolution(x, filters, stride, size=3):
    x = keras.layers.Conv2D(filters, size, stride, padding="same", use_bias=False)(x)
    return keras.layers.BatchNormalization(momentum=0.9)(x)


def separable(x, filters, stride):
    """Depthwise 3x3, then 1x1; the caller says what follows the last normalisation."""
    x = keras.layers.DepthwiseConv2D(3, stride, padding="same", use_bias=False)(x)
    x = keras.layers.ReLU(6.0)(keras.layers.BatchNormalization(momentum=0.9)(x))
    return convolution(x, filters, 1, size=1)


def network(classes):
    """2.2 million multiplications: two residual steps between three that halve the picture."""
    picture = keras.Input((SIDE, SIDE, 3), batch_size=None)
    x = keras.layers.ReLU(6.0)(convolution(picture, 24, 2))
    for filters in (40, 80):
        x = keras.layers.ReLU(6.0)(separable(x, filters, 2))
        x = keras.layers.Add()([x, separable(x, filters, 1)])
    x = keras.layers.ReLU(6.0)(separable(x, 128, 2))
    x = keras.layers.AveragePooling2D(SIDE // 16)(x)
    x = keras.layers.Reshape((128,))(x)
    return keras.Model(picture, keras.layers.Dense(classes, activation="softmax")(x))


class Shuffled(keras.utils.PyDataset):
    """Batches in random order, each mirrored and turned at random: a shape keeps its class."""

    def __init__(self, images, labels, rng):
        super().__init__()
        self.images, self.labels, self.rng = images, labels, rng
        self.order = rng.permutation(len(labels))

    def __len__(self):
        return len(self.labels) // BATCH

    def __getitem__(self, index):
        chosen = np.sort(self.order[index * BATCH:(index + 1) * BATCH])
        images = self.images[chosen].astype(np.float32) / 255
        if self.rng.random() < 0.5:
            images = images.transpose(0, 2, 1, 3)
        rows, columns = self.rng.choice([1, -1], 2)
        images = images[:, ::rows, ::columns]
        return np.ascontiguousarray(images), self.labels[chosen]

    def on_epoch_end(self):
        self.order = self.rng.permutation(len(self.labels))


def compile_with_cosine(model, steps, rate):
    schedule = keras.optimizers.schedules.CosineDecay(
        rate / 20, steps - steps // 12, warmup_target=rate, warmup_steps=steps // 12)
    model.compile(keras.optimizers.AdamW(schedule, weight_decay=1e-3),
                  keras.losses.SparseCategoricalCrossentropy(), metrics=["accuracy"])


def train(model, images, labels):
    batches = Shuffled(images, labels, np.random.default_rng(WEIGHTS_SEED))
    compile_with_cosine(model, len(batches) * EPOCHS, PEAK_RATE)
    model.fit(batches, epochs=EPOCHS, shuffle=False, verbose=2)


def linear_accuracy(train_set, test_set, classes):
    """Best test accuracy that softmax regression on the pixels reaches in any of its epochs."""
    model = keras.Sequential([
        keras.Input((SIDE, SIDE, 3), dtype="uint8"), keras.layers.Rescaling(1 / 255, -0.5),
        keras.layers.Flatten(),
        keras.layers.Dense(classes, activation="softmax")])
    model.compile(keras.optimizers.Adam(1e-4), keras.losses.SparseCategoricalCrossentropy(),
                  metrics=["accuracy"])
    history = model.fit(*train_set, batch_size=256, epochs=8, verbose=2, validation_data=test_set)
    return max(history.history["val_accuracy"])


def quantise(model, images):
    """Full-integer post-training quantisation for batch 1, int8 at both ends."""
    call = tf.function(lambda x: model(x, training=False))
    concrete = call.get_concrete_function(tf.TensorSpec((1, SIDE, SIDE, 3), tf.float32, "frame"))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([freeze(concrete)])

    def examples():
        # Black and white first: the input's range becomes exactly 0 to 1 (scale 1/255).
        yield [np.zeros((1, SIDE, SIDE, 3), np.float32)]
        yield [np.ones((1, SIDE, SIDE, 3), np.float32)]
        for image in images[:CALIBRATION]:
            yield [image[None].astype(np.float32) / 255]

    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = examples
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = tf.int8
    converter.inference_output_type = tf.int8
    # NNAPI's FULLY_CONNECTED has one scale for all weights.
    converter._experimental_disable_per_channel_quantization_for_dense_layers = True
    return converter.convert()


class Reference:
    """The model in TFLite's reference kernels, which define the right answer."""

    def __init__(self, content):
        kind = tf.lite.experimental.OpResolverType.BUILTIN_REF
        self.interpreter = tf.lite.Interpreter(
            model_content=content, experimental_op_resolver_type=kind, num_threads=1)
        self.interpreter.allocate_tensors()
        self.input = self.interpreter.get_input_details()[0]
        self.output = self.interpreter.get_output_details()[0]

    def run(self, images):
        """Scores (int8) for pictures (uint8)."""
        scores = np.empty((len(images), self.output["shape"][1]), np.int8)
        for k, image in enumerate(images):
            self.interpreter.set_tensor(self.input["index"], signed(image)[None])
            self.interpreter.invoke()
            scores[k] = self.interpreter.get_tensor(self.output["index"])[0]
        return scores

    def operations(self):
        return [op["op_name"] for op in self.interpreter._get_ops_details()]


def signed(images):
    """The input tensor of a picture: byte - 128 (scale 1/255, zero point -128)."""
    return (images.astype(np.int16) - 128).astype(np.int8)


def tensor(details):
    scale, zero_point = details["quantization"]
    return {"name": details["name"], "type": details["dtype"].__name__,
            "shape": details["shape"].tolist(), "scale": float(scale), "zero_point": int(zero_point)}


def write_goldens(reference, images, labels, names):
    """Some held-out pictures with the reference kernels' answers: one of each class, and those
    that the model is least sure of, since most others have one score full and the rest empty."""
    scores = reference.run(images)
    clear = [np.flatnonzero(labels == k)[0] for k in range(len(names))]
    unsure = np.argsort(scores.max(axis=1), kind="stable")[:GOLDENS_UNSURE]
    chosen = np.unique(np.concatenate([clear, unsure]))
    inputs, outputs = signed(images[chosen]), scores[chosen]
    (HERE / "shapes.golden.bin").write_bytes(inputs.tobytes() + outputs.tobytes())
    description = {
        "model": "shapes.tflite",
        "count": len(chosen),
        "inputs": {"type": "int8", "shape": list(inputs.shape), "offset": 0, "bytes": inputs.nbytes},
        "outputs": {"type": "int8", "shape": list(outputs.shape), "offset": inputs.nbytes,
                    "bytes": outputs.nbytes},
        "kernels": f"TFLite {tf.__version__} BUILTIN_REF",
        "camera_seed": SETS["test"][0],
        "samples": chosen.tolist(),
        "classes": labels[chosen].tolist(),
    }
    (HERE / "shapes.golden.json").write_text(json.dumps(description, indent=1) + "\n")


def measure(reference, sets):
    """Accuracies of the quantised file, and where the test set's mistakes lie."""
    right = {}
    for name in ("test", "stream"):
        images, labels = sets[name]
        guesses = reference.run(images).argmax(axis=1)
        right[name] = guesses == labels
        if name == "test":
            confusion = np.zeros((labels.max() + 1,) * 2, int)
            np.add.at(confusion, (labels, guesses), 1)
    windows = right["stream"].reshape(-1, WINDOW).mean(axis=1)
    return {
        "test_accuracy": float(right["test"].mean()),
        "stream_accuracy": float(right["stream"].mean()),
        f"stream_worst_{WINDOW}_frames": float(windows.min()),
        "test_confusion_rows_true": confusion.tolist(),
    }


def main():
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    start = time.monotonic()
    tf.config.threading.set_intra_op_parallelism_threads(2)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(WEIGHTS_SEED)
    tf.config.experimental.enable_op_determinism()
    with tempfile.TemporaryDirectory() as folder:
        sets, names = draw(folder)

    linear = linear_accuracy(sets["train"], sets["test"], len(names))
    model = network(len(names))
    model.summary()
    train(model, *sets["train"])
    floating = model.evaluate(sets["test"][0].astype(np.float32) / 255, sets["test"][1], verbose=0)[1]

    content = quantise(model, sets["train"][0])
    reference = Reference(content)
    operations = reference.operations()
    measured = measure(reference, sets)
    print(f"softmax regression on pixels: {linear:.4f}")
    print(f"float model: {floating:.4f}")
    print(f"quantised file: {measured}")
    print(f"operations: {operations}")
    print(f"input: {tensor(reference.input)}\noutput: {tensor(reference.output)}")

    assert set(operations) <= ALLOWED_OPS, operations
    assert measured["test_accuracy"] >= LEAST_ACCURACY
    assert measured["stream_accuracy"] >= LEAST_ACCURACY
    assert linear < MOST_LINEAR_ACCURACY
    assert len(content) < MOST_BYTES
    assert reference.input["quantization"] == (np.float32(1 / 255), -128), reference.input

    (HERE / "shapes.tflite").write_bytes(content)
    write_goldens(reference, *sets["test"], names)
    report = {
        "labels": names,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "input": tensor(reference.input),
        "output": tensor(reference.output),
        "operations": operations,
        "linear_accuracy": linear,
        "float_accuracy": floating,
        **measured,
        "sets": {n: {"camera_seed": s, "count": c, "stream": t} for n, (s, c, t) in SETS.items()},
        "weights_seed": WEIGHTS_SEED,
        "epochs": EPOCHS,
        "versions": {"tensorflow": tf.__version__, "keras": keras.__version__,
                     "numpy": np.__version__},
    }
    (HERE / "shapes.json").write_text(json.dumps(report, indent=1) + "\n")
    print(f"wrote {len(content)} bytes after {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
