"""Drivers that are killed."""

import os
import signal
import unittest

import numpy as np

import burst

from . import support


class Death(unittest.TestCase):
    def survives(self, driver, kill, start_again):
        """Kills the driver twice, and goes on both times."""
        inputs, outputs, classes = support.golden()
        model = driver.load(support.MODEL)
        task = burst.ImageClassifier(driver, support.MODEL, max_results=1)
        picture = (inputs[5].astype(np.int16) + 128).astype(np.uint8)
        for round in range(2):
            (given,) = model.inputs
            given[0] = inputs[round]
            kept = model.run(timeout=support.HANG)[0]
            pid = driver.pid
            self.assertFalse(driver.reconnect(), "nothing is wrong")
            kill()
            with self.assertRaisesRegex(burst.DriverDied, str(pid)):
                model.run(timeout=support.HANG)
            with self.assertRaises(burst.DriverDied):
                task.classify(picture)
            self.assertFalse(driver.is_alive)
            start_again()
            self.assertTrue(driver.reconnect(timeout=support.HANG))
            self.assertNotEqual(driver.pid, pid)
            self.assertEqual(model.driver_pid, driver.pid)
            np.testing.assert_array_equal(kept[0], outputs[round], "an old output stays")
            self.assertIs(model.inputs[0], given)
            # What was written to the input is there for the next run.
            np.testing.assert_array_equal(model.run(timeout=support.HANG)[0][0], outputs[round])
            self.assertEqual(task.classify(picture)[0].index, classes[5])

    def test_a_killed_driver_of_our_own_is_started_again(self):
        with burst.start(support.PROGRAM) as driver:
            self.survives(driver, lambda: os.kill(driver.pid, signal.SIGKILL), lambda: None)

    def test_a_killed_service_is_connected_to_again(self):
        with support.service() as service, burst.connect(service.path) as driver:
            self.assertEqual(driver.pid, service.process.pid)
            self.survives(driver, service.kill, service.start)

    def test_a_driver_that_is_killed_during_a_run_ends_the_wait(self):
        with burst.start(support.PROGRAM) as driver:
            model = driver.load(support.MODEL)
            pid = driver.pid
            with support.stopped(pid):
                killer = support.once_main_is_in("run", lambda: os.kill(pid, signal.SIGKILL))
                with self.assertRaises(burst.DriverDied):
                    model.run(timeout=support.HANG)
                killer.join()
            driver.reconnect()
            model.run(timeout=support.HANG)

    def test_a_service_that_does_not_come_back_is_said_so(self):
        with support.service() as service:
            driver = burst.connect(service.path)
            model = driver.load(support.MODEL)
            service.kill()
            with self.assertRaises(burst.DriverDied):
                model.run(timeout=support.HANG)
            with self.assertRaisesRegex(burst.NoService, "no service listens"):
                driver.reconnect(timeout=0.2)
            service.start()
            self.assertTrue(driver.reconnect(timeout=support.HANG))
            model.run(timeout=support.HANG)

    def test_ctrl_c_ends_the_wait_for_a_service(self):
        with support.service() as service:
            driver = burst.connect(service.path)
            service.kill()
            support.until(lambda: not driver.is_alive)
            interrupts = support.once_main_is_in("reconnect", lambda: os.kill(os.getpid(), signal.SIGINT))
            with self.assertRaises(KeyboardInterrupt):
                driver.reconnect(timeout=support.HANG)
            interrupts.join()
            service.start()
