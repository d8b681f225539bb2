//! A driver that imports memories once and keeps the imports across executions, as one does whose
//! accelerator has page tables of its own. It says on standard output what it keeps.

use std::collections::HashMap;
use std::sync::Arc;

use burst_hal::{
    BurstExecutor, Device, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Model, Pool,
    PrepareOptions, PrepareResult, PreparedModel, Request, RequestArgument, TimePoint,
};
use burst_server::{Listener, serve};

struct Accelerator;

impl Device for Accelerator {
    fn name(&self) -> &str {
        "accelerator"
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(Program))
    }
}

struct Program;

impl PreparedModel for Program {
    /// Without a burst every memory is imported for the one execution.
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        let mut executor = Executor::default();
        let mut result = ExecutionResult::of(ErrorStatus::None);
        let mut slots = Vec::new();
        for (slot, pool) in (0..).zip(&request.pools) {
            if let burst_hal::RequestPool::Memory(memory) = pool {
                executor.imports.insert(slot, Import { memory: Pool::clone(memory), uses: 0 });
                slots.push(slot);
            }
        }
        executor.execute(request, &slots, options, &mut result);
        result
    }

    fn open_executor(self: Arc<Self>) -> Result<Option<Box<dyn BurstExecutor>>, Failure> {
        Ok(Some(Box::new(Executor::default())))
    }
}

/// What the accelerator needs of a memory. Here that is the memory itself.
struct Import {
    memory: Pool,
    uses: u64,
}

#[derive(Default)]
struct Executor {
    imports: HashMap<i32, Import>,
    bytes: Vec<u8>,
}

impl BurstExecutor for Executor {
    fn is_cached(&self, slot: i32) -> bool {
        self.imports.contains_key(&slot)
    }

    fn add(&mut self, slot: i32, memory: &Pool) -> Result<(), Failure> {
        println!("imported slot {slot}");
        self.imports.insert(slot, Import { memory: Pool::clone(memory), uses: 0 });
        Ok(())
    }

    fn remove(&mut self, slot: i32) {
        if let Some(import) = self.imports.remove(&slot) {
            println!("let go of slot {slot} after {} uses", import.uses);
        }
    }

    fn execute(
        &mut self,
        request: &Request,
        slots: &[i32],
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        if options.deadline.is_some_and(TimePoint::has_passed) {
            return result.reset(ErrorStatus::MissedDeadlineTransient);
        }
        let ran = self.run(request, slots);
        result.reset(ran.err().map_or(ErrorStatus::None, |failure| failure.status));
    }
}

impl Executor {
    fn run(&mut self, request: &Request, slots: &[i32]) -> Result<(), Failure> {
        let (Some(input), Some(output)) = (request.inputs.first(), request.outputs.first()) else {
            return Err(Failure::invalid("one input and one output"));
        };
        self.bytes.resize(input.location.length as usize, 0);
        let from = import(&mut self.imports, slots, input)?;
        from.uses += 1;
        from.memory
            .read(input.location.offset.into(), &mut self.bytes)
            .map_err(Failure::general)?;
        self.bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
        let to = import(&mut self.imports, slots, output)?;
        to.memory.write(output.location.offset.into(), &self.bytes).map_err(Failure::general)
    }
}

/// The import that an argument lies in: the request names its pool, that one's slot names it.
fn import<'a>(
    imports: &'a mut HashMap<i32, Import>,
    slots: &[i32],
    argument: &RequestArgument,
) -> Result<&'a mut Import, Failure> {
    slots
        .get(argument.location.pool_index as usize)
        .and_then(|slot| imports.get_mut(slot))
        .ok_or_else(|| Failure::invalid("an argument lies in no import"))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("expected: SOCKET")?;
    Ok(serve(Arc::new(Accelerator), &Listener::bind(path)?)?)
}
