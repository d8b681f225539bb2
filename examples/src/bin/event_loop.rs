//! A client without a thread per burst: two bursts, two requests under way on each, one epoll.
//!
//! Whatever else the program has to do, its descriptors go into the same epoll.

use std::sync::Arc;

use burst_client::{Burst, BurstOptions, Client, Deadline, ShmMemory, Ticket};
use burst_hal::{ErrorStatus, ExecutionOptions, Pool, PrepareOptions, Request};
use examples::{BYTES, model, request};
use rustix::event::epoll;

/// Requests of each burst that are under way at once.
const DEPTH: u16 = 2;
/// Requests of each burst in all.
const REQUESTS: u8 = 100;

type Error = Box<dyn std::error::Error>;

/// A burst with its frames. Frame `n` holds request `n`, `n + DEPTH`, and so on.
struct BurstPipeline {
    burst: Burst,
    frames: Vec<(Pool, Request)>,
    /// Requests under way, the oldest first.
    tickets: std::collections::VecDeque<Ticket>,
    sent: u8,
    answered: u8,
}

impl BurstPipeline {
    /// Sends as many requests as may be under way.
    fn fill(&mut self) -> Result<(), Error> {
        while self.sent < REQUESTS && self.tickets.len() < self.burst.depth() {
            let (memory, request) = &self.frames[usize::from(self.sent) % self.frames.len()];
            memory.write(0, &[self.sent; BYTES as usize])?;
            // A slot of the burst is free, so this does not wait.
            let options = ExecutionOptions::default();
            self.tickets.push_back(self.burst.submit(request, &options, Deadline::never())?);
            self.sent += 1;
        }
        Ok(())
    }

    /// Takes what results there are.
    fn drain(&mut self) -> Result<(), Error> {
        while let Some(oldest) = self.tickets.front() {
            let Some(result) = self.burst.try_wait(oldest)? else { break };
            if result.status != ErrorStatus::None {
                return Err(format!("request {}: {}", self.answered, result.status).into());
            }
            let (memory, _) = &self.frames[usize::from(self.answered) % self.frames.len()];
            let mut output = [0; BYTES as usize];
            memory.read(BYTES.into(), &mut output)?;
            if output != [self.answered + 1; BYTES as usize] {
                return Err(format!("request {} gave {output:?}", self.answered).into());
            }
            self.tickets.pop_front();
            self.answered += 1;
        }
        Ok(())
    }
}

fn main() -> Result<(), Error> {
    let path = std::env::args().nth(1).ok_or("expected: SOCKET")?;
    let client = Client::connect(path)?;
    let device = client.devices()?.into_iter().next().ok_or("the service has no device")?;
    let prepared = device.prepare(&model(), &PrepareOptions::default())?;
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut pipelines = Vec::new();
    for number in 0..2 {
        let mut burst = prepared.configure_burst(&BurstOptions::default().with_depth(DEPTH))?;
        let data = epoll::EventData::new_u64(number);
        epoll::add(&poll, burst.completion_fd()?, data, epoll::EventFlags::IN)?;
        let frames = (0..burst.depth())
            .map(|_| -> Result<_, Error> {
                let memory: Pool = Arc::new(ShmMemory::create(2 * BYTES as usize)?);
                let request = request(&memory);
                Ok((memory, request))
            })
            .collect::<Result<_, _>>()?;
        let tickets = std::collections::VecDeque::new();
        pipelines.push(BurstPipeline { burst, frames, tickets, sent: 0, answered: 0 });
    }
    for pipeline in &mut pipelines {
        pipeline.fill()?;
    }
    let mut wakes = 0;
    let mut events = Vec::with_capacity(pipelines.len());
    while pipelines.iter().any(|pipeline| pipeline.answered < REQUESTS) {
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), None)?;
        wakes += 1;
        for event in events.drain(..) {
            let pipeline = &mut pipelines[usize::try_from(event.data.u64())?];
            pipeline.drain()?;
            pipeline.fill()?;
        }
    }
    let answered: u32 = pipelines.iter().map(|pipeline| u32::from(pipeline.answered)).sum();
    println!("{answered} requests over {} bursts, all right, {wakes} wake-ups", pipelines.len());
    Ok(())
}
