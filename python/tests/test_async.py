"""Runs that an event loop awaits."""

import asyncio
import os
import signal
import unittest

import numpy as np

import burst

from . import support


class Awaited(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.driver = burst.start(support.PROGRAM)
        self.addCleanup(self.driver.close)
        self.inputs, self.outputs, _ = support.golden()

    async def check(self, model, which):
        model.inputs[0][0] = self.inputs[which]
        (found,) = await model.run_async(timeout=support.HANG)
        np.testing.assert_array_equal(found[0], self.outputs[which])

    async def test_models_are_awaited_at_once_without_a_thread_for_each_run(self):
        models = [self.driver.load(support.MODEL) for _ in range(3)]

        async def all_goldens(model):
            for which in range(len(self.inputs)):
                await self.check(model, which)

        await asyncio.gather(*map(all_goldens, models))
        before = support.threads()
        await asyncio.gather(*map(all_goldens, models))
        self.assertEqual(support.threads(), before)
        self.assertGreater(models[0].driver_time, 0)
        # Whoever waits by itself goes on as before, and gets the same.
        models[0].inputs[0][0] = self.inputs[7]
        np.testing.assert_array_equal(models[0].run(timeout=support.HANG)[0][0], self.outputs[7])

    async def test_the_loop_goes_on_and_a_second_run_is_refused(self):
        model = self.driver.load(support.MODEL)
        await self.check(model, 0)
        with support.stopped(self.driver.pid):
            run = asyncio.ensure_future(self.check(model, 1))
            await asyncio.sleep(0)
            with self.assertRaises(burst.Busy):
                await model.run_async()
            with self.assertRaises(burst.Busy):
                model.run()
            self.assertFalse(run.done())
        await run

    async def test_a_cancelled_run_and_a_time_out_leave_the_model_usable(self):
        model = self.driver.load(support.MODEL)
        await self.check(model, 0)
        with support.stopped(self.driver.pid):
            run = asyncio.ensure_future(model.run_async())
            await asyncio.sleep(0)
            run.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await run
            with self.assertRaises(burst.Timeout):
                await model.run_async(timeout=0.05)
        await self.check(model, 1)
        with support.stopped(self.driver.pid), self.assertRaises(burst.Timeout):
            await model.run_async(timeout=0.05)
        # After a run that was waited for in vain, both ways.
        model.inputs[0][0] = self.inputs[2]
        np.testing.assert_array_equal(model.run(timeout=support.HANG)[0][0], self.outputs[2])
        with support.stopped(self.driver.pid), self.assertRaises(burst.Timeout):
            model.run(timeout=0.05)
        await self.check(model, 3)

    async def test_a_killed_driver_ends_the_wait_and_reconnecting_goes_on(self):
        model = self.driver.load(support.MODEL)
        await self.check(model, 0)
        pid = self.driver.pid
        with support.stopped(pid):
            run = asyncio.ensure_future(model.run_async(timeout=support.HANG))
            await asyncio.sleep(0)
            with self.assertRaises(burst.Busy):
                model._renew(self.driver._connection)
            os.kill(pid, signal.SIGKILL)
            with self.assertRaises(burst.DriverDied):
                await run
        with self.assertRaises(burst.DriverDied):
            await model.run_async(timeout=support.HANG)
        self.driver.reconnect()
        await self.check(model, 1)
