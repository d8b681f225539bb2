"""Tasks: pictures and sound to answers."""

import unittest

import numpy as np

import burst

from . import support

MODELS = support.SHARED / "models"


def _picture(values):
    return (values.astype(np.int16) + 128).astype(np.uint8)


class OwnModel(support.Driven):
    def test_golden_pictures_are_classified(self):
        inputs, _, classes = support.golden()
        names = [f"shape {index}" for index in range(10)]
        task = burst.ImageClassifier(self.driver, support.MODEL, labels=names, max_results=3)
        for values, label in zip(inputs, classes):
            found = task.classify(_picture(values))
            self.assertEqual((len(found), found[0].index, found[0].label), (3, label, names[label]))
            self.assertEqual(sorted((one.score for one in found), reverse=True), [one.score for one in found])
        picture = _picture(inputs[0])
        only = self.driver.load_task(
            burst.ImageClassifier, support.MODEL, labels=names, allowed=["shape 4"], timeout=support.HANG
        )
        self.assertEqual([one.index for one in only.classify(picture)], [4])
        # Whatever way the pixels lie in memory.
        turned = np.asfortranarray(picture)
        self.assertEqual(task.classify(turned), task.classify(picture))

    def test_what_does_not_fit_is_said(self):
        task = burst.ImageClassifier(self.driver, support.MODEL)
        for wrong in (np.zeros((4, 4), np.uint8), np.zeros((4, 4, 3)), np.zeros((4, 4, 4), np.uint8)):
            with self.assertRaisesRegex(ValueError, "a picture is an array of uint8"):
                task.classify(wrong)
        with self.assertRaises(ValueError):
            task.classify(np.zeros((0, 4, 3), np.uint8))
        with self.assertRaisesRegex(burst.BadModel, "is no detector"):
            burst.ObjectDetector(self.driver, support.MODEL)
        with self.assertRaisesRegex(ValueError, "/nonexistent.txt"):
            burst.ImageClassifier(self.driver, support.MODEL, labels="/nonexistent.txt")
        with self.assertRaisesRegex(burst.BadModel, "no class of .* has the label"):
            burst.ImageClassifier(self.driver, support.MODEL, allowed=["cow"])
        with self.assertRaises(TypeError):
            burst.Task(self.driver, support.MODEL)
        with self.assertRaises(ValueError):
            task._native.detect(b"", 0, 0)


@unittest.skipUnless(MODELS.is_dir(), "needs models of ../shared")
class SharedModels(support.Driven):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        size = 320 * 240 * 3
        at = np.arange(size)
        cls.picture = ((at // 3 % 320 + at // 2000) % 256).astype(np.uint8).reshape(240, 320, 3)

    def load(self, kind, name, **options):
        return kind(self.driver, MODELS / f"{name}.tflite", **options)

    def test_a_detector_says_what_is_where(self):
        found = self.load(burst.ObjectDetector, "ssd_mobilenet_v1_coco_quant", score_threshold=0.001)
        found = found.detect(self.picture)
        self.assertTrue(found)
        for one in found:
            self.assertLessEqual(one.box.left, one.box.right)
            self.assertLessEqual(one.box.top, one.box.bottom)

    def test_a_segmenter_says_what_each_pixel_shows(self):
        mask, classes = self.load(burst.ImageSegmenter, "deeplabv3_257_float").segment(self.picture)
        self.assertEqual((mask.shape, mask.dtype), ((257, 257), np.uint16))
        for one in classes:
            self.assertAlmostEqual(one.score, np.mean(mask == one.index), places=5)

    def test_a_picture_is_made_larger(self):
        larger = self.load(burst.ImageUpscaler, "edsr_f32b5_240x135_int8").upscale(self.picture)
        self.assertEqual(larger.ndim, 3)
        self.assertGreater(larger.shape[0], 240)

    def test_sound_is_heard_window_by_window(self):
        task = self.load(burst.AudioClassifier, "yamnet_wavin_int8", max_results=2)
        samples = np.sin(np.arange(32000) / 8).astype(np.float32)
        found = task.classify(samples, 16000)
        self.assertGreater(len(found), 1)
        self.assertLess(found[0].at, found[1].at)
        self.assertEqual(len(found[0].classes), 2)
        with self.assertRaisesRegex(ValueError, "samples are"):
            task.classify(np.zeros(10, np.int16), 16000)
        with self.assertRaises(ValueError):
            task.classify(samples, 7)

    def test_a_stream_goes_on_where_it_was(self):
        task = self.load(burst.RecurrentStream, "kws_svdf_rnn_float")
        values = np.linspace(-1, 1, 40).astype(np.float32)
        first, second = task.step(values), task.step(values)
        self.assertFalse(np.array_equal(first, second), "states are carried on")
        task.reset()
        np.testing.assert_array_equal(task.step(values), first)

    def test_a_model_of_224_pixels_runs_on_arrays(self):
        model = self.driver.load(MODELS / "mobilenet_v1_0.25_224_float.tflite")
        self.assertEqual(model.inputs[0].shape, (1, 224, 224, 3))
        model.inputs[0][...] = 0.5
        (scores,) = model.run(timeout=support.HANG)
        self.assertAlmostEqual(float(scores.sum()), 1.0, places=3)
