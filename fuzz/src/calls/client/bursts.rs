//! Bursts: their queues, their slots, requests over them, and what is none.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use burst_hal::{ErrorStatus, ExecutionResult};
use burst_wire::control::{
    Answer, Call, List, PoolSource, QueueDescriptor, QueueGrantor, WaitStyle,
};
use burst_wire::{DATUM_BYTES, Features, RequestExtras, RequestPacket, decode_result};
use fmq::{Consumer, Deadline, Descriptor, Producer, QueueConfig};

use super::super::talk::HANG;
use super::{Client, Kind, Must, OUTPUT_AT, argument, chosen, found};
use crate::Input;

/// One burst.
pub(super) struct Burst {
    pub(super) number: u32,
    requests: Producer,
    results: Consumer,
    /// Whether something was sent that is no request: then nothing is known of the burst any more.
    pub(super) is_odd: bool,
}

fn wire_descriptor(descriptor: &Descriptor) -> QueueDescriptor {
    let grantor = |grantor: &fmq::Grantor| QueueGrantor {
        fd_index: grantor.fd_index,
        offset: grantor.offset,
        extent: grantor.extent,
    };
    QueueDescriptor {
        quantum: descriptor.quantum,
        flags: descriptor.flags,
        descriptors: u8::try_from(descriptor.fds.len()).unwrap(),
        grantors: List(descriptor.grantors.iter().map(grantor).collect()),
    }
}

impl Client {
    pub(super) fn configure(&mut self, input: &mut Input<'_>) {
        let model = chosen(&self.models, input.u8());
        if self.bursts.len() >= 8 {
            return;
        }
        let config = QueueConfig::new(DATUM_BYTES, 64);
        let (requests, results) =
            (Producer::create(&config).unwrap(), Consumer::create(&config).unwrap());
        let queues = [requests.descriptor().unwrap(), results.descriptor().unwrap()];
        let depth = u16::from(input.u8());
        let call = Call::ConfigureBurst {
            model: model.unwrap_or_else(|| self.nothing(Kind::Model)),
            request_queue: wire_descriptor(&queues[0]),
            result_queue: wire_descriptor(&queues[1]),
            features: 0,
            wait: WaitStyle::Sleep,
            depth: depth.max(1),
        };
        let descriptors: Vec<BorrowedFd<'_>> =
            queues.iter().flat_map(|queue| &queue.fds).map(AsFd::as_fd).collect();
        match self.call(call, &descriptors) {
            Some(Ok(Answer::Burst { burst: number })) if model.is_some() && depth < 2 => {
                assert!(self.bursts.iter().all(|burst| burst.number != number), "given twice");
                self.bursts.push(Burst { number, requests, results, is_odd: false });
            }
            Some(Err(_)) if model.is_none() || depth > 1 => {}
            other => panic!("depth {depth} of {model:?}: {other:?}"),
        }
    }

    fn burst(&self, choice: u8) -> Option<u32> {
        let numbers: Vec<u32> = self.bursts.iter().map(|burst| burst.number).collect();
        chosen(&numbers, choice)
    }

    /// Puts a memory into a slot, or empties it.
    pub(super) fn fill_slot(&mut self, input: &mut Input<'_>) {
        let burst = self.burst(input.u8());
        let number = burst.unwrap_or_else(|| self.nothing(Kind::Burst));
        let slot = i32::from(input.u8() % 4);
        if input.flag() {
            return self.expect(Call::FreeMemory { burst: number, slot }, &[], found(burst));
        }
        let (source, of_source) = self.source(input);
        let call = Call::PushMemory { burst: number, slot, source };
        let pool = self.pool.as_fd().try_clone_to_owned().unwrap();
        let comes_along = matches!(source, PoolSource::Descriptor { .. });
        let descriptors = if comes_along { vec![pool.as_fd()] } else { Vec::new() };
        let Some(outcome) = self.call(call, &descriptors) else { return };
        // A slot may be full already.
        assert!(outcome.is_err() || burst.is_some() && of_source != Must::Fail, "{outcome:?}");
    }

    /// One request over a burst, and its result.
    pub(super) fn run_burst(&mut self, input: &mut Input<'_>) {
        let (choice, slot) = (input.u8(), i32::from(input.u8() % 4));
        let Some(number) = self.burst(choice) else { return };
        let gives_memories = self.talk.gives_memories;
        let at = self.bursts.iter().position(|burst| burst.number == number).unwrap();
        if self.bursts[at].is_odd {
            return;
        }
        let extras = RequestExtras::default();
        let (from, to) = ([argument(0)], [argument(OUTPUT_AT)]);
        let packet = RequestPacket {
            inputs: &from,
            outputs: &to,
            slots: &[slot],
            measure_timing: false,
            extras,
        };
        let mut bytes = Vec::new();
        packet.encode_into(&mut bytes).unwrap();
        self.bursts[at].requests.write_blocking(&bytes, Deadline::after(HANG)).unwrap();
        let begun = Instant::now();
        let datums = loop {
            let soon = Deadline::after(Duration::from_millis(1));
            if let Ok(datums) = self.bursts[at].results.wait(1, soon) {
                break datums;
            }
            // The service may want a memory first.
            self.talk.listen();
            assert!(begun.elapsed() < HANG, "a request over a burst is not answered");
        };
        let mut bytes = vec![0; datums * DATUM_BYTES];
        self.bursts[at].results.read(&mut bytes).unwrap();
        let mut result = ExecutionResult::of(ErrorStatus::None);
        decode_result(&bytes, Features::NONE, 1, true, &mut result).unwrap();
        let is_answered = result.status == ErrorStatus::None || !gives_memories;
        assert!(is_answered, "{}", result.status);
        self.succeeded += usize::from(result.status == ErrorStatus::None);
    }

    pub(super) fn close(&mut self, input: &mut Input<'_>) {
        let burst = self.burst(input.u8());
        self.expect(
            Call::CloseBurst { burst: burst.unwrap_or_else(|| self.nothing(Kind::Burst)) },
            &[],
            found(burst),
        );
        self.bursts.retain(|live| Some(live.number) != burst);
    }

    /// Datums that are no request, which nobody waits for.
    pub(super) fn nonsense(&mut self, input: &mut Input<'_>) {
        let choice = input.u8();
        let count = 1 + input.below(8);
        let mut bytes = input.bytes(count * DATUM_BYTES).to_vec();
        bytes.resize(count * DATUM_BYTES, 0);
        let Some(number) = self.burst(choice) else { return };
        let burst = self.bursts.iter_mut().find(|burst| burst.number == number).unwrap();
        burst.is_odd = true;
        // The queue may be full, or closed, by now.
        if burst.requests.write(&bytes).is_ok() {
            let _ = burst.requests.wake();
        }
    }
}
