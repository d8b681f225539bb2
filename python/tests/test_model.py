"""Models: arrays in shared memory, waiting, failures."""

import gc
import os
import signal
import tempfile
import threading
import unittest

import numpy as np

import burst

from . import support


class Models(support.Driven):
    def test_golden_inputs_give_golden_outputs(self):
        model = self.driver.load(support.MODEL)
        inputs, outputs, classes = support.golden()
        for given, wanted, label in zip(inputs, outputs, classes):
            model.inputs[0][0] = given
            (found,) = model.run(timeout=support.HANG)
            np.testing.assert_array_equal(found[0], wanted)
            self.assertEqual(found.argmax(), label)
        self.assertGreater(model.driver_time, 0)

    def test_tensors_are_described(self):
        model = self.driver.load(support.MODEL)
        (tensor,) = model.input_details
        self.assertEqual((tensor.dtype, tensor.shape), (np.dtype(np.int8), (1, 64, 64, 3)))
        self.assertGreater(tensor.scale, 0)
        self.assertEqual(model.output_details[0].shape, model.outputs[0].shape)
        self.assertEqual(model.driver_pid, self.driver.pid)
        self.assertNotEqual(model.driver_pid, os.getpid())
        self.assertIn("shapes.tflite", repr(model))

    def test_arrays_lie_in_memory_that_both_processes_have_mapped(self):
        model = self.driver.load(support.MODEL)
        place = model.inputs[0].__array_interface__["data"]
        outputs = model.outputs[0].__array_interface__["data"]
        for _ in range(3):
            (found,) = model.run(timeout=support.HANG)
            self.assertEqual(model.inputs[0].__array_interface__["data"], place)
            self.assertEqual(found.__array_interface__["data"], outputs)
        with open(f"/proc/{self.driver.pid}/maps") as maps:
            theirs = {line.split()[4] for line in maps if "memfd" in line}
        with open("/proc/self/maps") as maps:
            ours = [line.split() for line in maps if "memfd" in line]
        for address, is_writable in [(place[0], True), (outputs[0], False)]:
            lines = [line for line in ours if _holds(line[0], address)]
            self.assertEqual(len(lines), 1, "in shared memory")
            self.assertEqual("w" in lines[0][1], is_writable)
            self.assertIn(lines[0][4], theirs, "the driver has it too")

    def test_outputs_are_not_to_be_written(self):
        model = self.driver.load(support.MODEL)
        self.assertFalse(model.outputs[0].flags.writeable)
        with self.assertRaises(ValueError):
            model.outputs[0][...] = 0
        with self.assertRaises(ValueError):
            model.outputs[0].flags.writeable = True

    def test_an_array_keeps_its_memory(self):
        driver = burst.start(support.PROGRAM)
        model = driver.load(support.MODEL)
        inputs, outputs, _ = support.golden()
        model.inputs[0][0] = inputs[0]
        (found,) = model.run(timeout=support.HANG)
        (given,) = model.inputs
        pid = model.driver_pid
        driver.close()
        del model, driver
        gc.collect()
        self.assertFalse(os.path.exists(f"/proc/{pid}"), "nobody needs it any more")
        np.testing.assert_array_equal(found[0], outputs[0])
        np.testing.assert_array_equal(given[0], inputs[0])
        given[...] = 7

    def test_a_model_outlives_its_closed_driver(self):
        with burst.start(support.PROGRAM) as driver:
            model = driver.load(support.MODEL)
        model.run(timeout=support.HANG)
        with self.assertRaisesRegex(burst.NoService, "closed"):
            driver.load(support.MODEL)

    def test_threads_use_one_model_one_after_the_other(self):
        model = self.driver.load(support.MODEL)
        model.inputs[0][0] = support.golden()[0][3]
        wanted = model.run(timeout=support.HANG)[0].copy()
        wrong = []

        def work():
            for _ in range(50):
                if not np.array_equal(model.run(timeout=support.HANG)[0], wanted):
                    wrong.append(1)

        workers = [threading.Thread(target=work) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(wrong, [])


class Waiting(unittest.TestCase):
    def setUp(self):
        self.driver = burst.start(support.PROGRAM)
        self.addCleanup(self.driver.close)
        self.model = self.driver.load(support.MODEL)
        self.inputs, self.outputs, _ = support.golden()

    def check(self, which):
        self.model.inputs[0][0] = self.inputs[which]
        (found,) = self.model.run(timeout=support.HANG)
        np.testing.assert_array_equal(found[0], self.outputs[which])

    def test_others_go_on_while_a_run_is_waited_for(self):
        pid = self.driver.pid
        with support.stopped(pid):
            goes_on = support.once_main_is_in("run", lambda: os.kill(pid, signal.SIGCONT))
            self.check(1)
            goes_on.join()

    def test_ctrl_c_ends_the_wait_and_the_model_goes_on(self):
        with support.stopped(self.driver.pid):
            interrupts = support.once_main_is_in("run", lambda: os.kill(os.getpid(), signal.SIGINT))
            with self.assertRaises(KeyboardInterrupt):
                self.model.run(timeout=support.HANG)
            interrupts.join()
        self.check(2)

    def test_ctrl_c_ends_what_waits_for_a_driver_that_does_not_answer(self):
        def interrupted(function, call):
            with support.stopped(self.driver.pid):
                interrupts = support.once_main_is_in(function, lambda: os.kill(os.getpid(), signal.SIGINT))
                with self.assertRaises(KeyboardInterrupt):
                    call()
                interrupts.join()

        interrupted("__init__", lambda: self.driver.load(support.MODEL))
        interrupted("__init__", lambda: burst.ImageClassifier(self.driver, support.MODEL))
        interrupted("devices", lambda: self.driver.devices)
        self.check(1)
        with support.service() as service:
            with support.stopped(service.process.pid):
                interrupts = support.once_main_is_in("connect", lambda: os.kill(os.getpid(), signal.SIGINT))
                with self.assertRaises(KeyboardInterrupt):
                    burst.connect(service.path, timeout=support.HANG)
                interrupts.join()
            burst.connect(service.path, timeout=support.HANG).close()

    def test_a_time_out_is_one_and_the_model_goes_on(self):
        with support.stopped(self.driver.pid), self.assertRaises(burst.Timeout):
            self.model.run(timeout=0.05)
        self.check(3)
        for wrong in (-1.0, float("nan"), float("inf")):
            with self.assertRaisesRegex(ValueError, "timeout"):
                self.model.run(timeout=wrong)

    def test_ctrl_c_ends_the_wait_of_a_task(self):
        task = burst.ImageClassifier(self.driver, support.MODEL)
        picture = np.zeros((64, 64, 3), np.uint8)
        with support.stopped(self.driver.pid):
            interrupts = support.once_main_is_in("classify", lambda: os.kill(os.getpid(), signal.SIGINT))
            with self.assertRaises(KeyboardInterrupt):
                task.classify(picture)
            interrupts.join()
        self.assertEqual(len(task.classify(picture)), 10)

    def test_a_forked_child_is_refused_and_its_parent_goes_on(self):
        child = os.fork()
        if child == 0:
            try:
                self.model.run(timeout=5)
            except burst.Error as error:
                os._exit(0 if "forked" in str(error) else 2)
            except BaseException:
                os._exit(3)
            os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.check(4)


class Refusals(support.Driven):
    def test_what_is_not_there_is_named(self):
        with self.assertRaisesRegex(burst.NoService, "/nonexistent/burst.sock"):
            burst.connect("/nonexistent/burst.sock")
        with self.assertRaisesRegex(burst.NoService, "/nonexistent/burst: no such program"):
            burst.start("/nonexistent/burst")
        with self.assertRaisesRegex(burst.NoService, "cannot start .*true"):
            burst.start("true")
        with self.assertRaisesRegex(burst.BadModel, "/nonexistent.tflite"):
            self.driver.load("/nonexistent.tflite")
        with self.assertRaisesRegex(burst.BadModel, "test_model"):
            self.driver.load(__file__)
        with self.assertRaisesRegex(burst.Refused, "no device none; there are: cpu"):
            self.driver.load(support.MODEL, device="none")

    def test_the_program_is_looked_for_in_path(self):
        before = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", before)
        with tempfile.TemporaryDirectory() as folder:
            os.environ["PATH"] = folder
            with self.assertRaisesRegex(burst.NoService, "`burst` is not in PATH"):
                burst.start()
            os.symlink(os.path.abspath(support.PROGRAM), os.path.join(folder, "burst"))
            with burst.start() as driver:
                self.assertEqual(driver.devices, ["cpu"])

    def test_classes_of_errors_are_those_that_programs_catch_already(self):
        for error in (
            burst.BadModel,
            burst.Busy,
            burst.DriverDied,
            burst.Failed,
            burst.NoService,
            burst.Refused,
            burst.Timeout,
        ):
            self.assertTrue(issubclass(error, burst.Error), error)
        self.assertTrue(issubclass(burst.Timeout, TimeoutError))
        self.assertTrue(issubclass(burst.DriverDied, ConnectionError))


def _holds(addresses, address):
    first, end = (int(part, 16) for part in addresses.split("-"))
    return first <= address < end
