//! A burst that is set up again with its connection.

use burst_hal::Pool;

use super::{
    Arc, Burst, BurstOptions, Caller, ClientError, Deadline, ExecutionOptions, ExecutionResult,
    Patience, ReconnectingModel, Request, answer_by,
};

/// A burst on a model of a service that may die and come back.
#[derive(Debug)]
pub struct ReconnectingBurst {
    model: Arc<ReconnectingModel>,
    options: BurstOptions,
    burst: Burst,
    /// Nothing can come of this burst any more.
    lost: bool,
    /// For whom its executions are, where somebody said so.
    caller: Option<Caller>,
}

impl ReconnectingBurst {
    pub(super) fn new(
        model: &Arc<ReconnectingModel>,
        options: &BurstOptions,
        burst: Burst,
    ) -> Self {
        let model = Arc::clone(model);
        ReconnectingBurst { model, options: *options, burst, lost: false, caller: None }
    }

    /// Runs once and waits for the result until `deadline`. Where an earlier execution was lost,
    /// everything is made again first.
    ///
    /// # Errors
    /// As [`Burst::execute`]: a request that is under way when the service dies is lost, and not
    /// sent again, since nobody knows what came of it.
    pub fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        deadline: Deadline,
    ) -> Result<&ExecutionResult, ClientError> {
        self.reconnect(deadline)?;
        let done = self.burst.run(request, options, deadline);
        self.lost = done.as_ref().is_err_and(ClientError::is_loss);
        done?;
        Ok(self.burst.last_result())
    }

    /// Makes everything again that is lost: connection, prepared model, burst, and the memories
    /// that were in its slots. Nothing, where nothing is.
    ///
    /// Memory that the service made
    /// ([`allocate_outputs`](crate::RemotePreparedModel::allocate_outputs)) stays readable, but
    /// only its maker could write it: allocate anew.
    ///
    /// # Errors
    /// The last attempt's.
    pub fn reconnect(&mut self, deadline: Deadline) -> Result<(), ClientError> {
        if !self.lost && self.burst.is_alive() {
            return Ok(());
        }
        let (model, options, caller) = (&self.model, &self.options, self.caller.as_ref());
        let patience = caller.map_or(deadline.into(), |caller| Patience::of(caller, deadline));
        let memories = self.burst.memories();
        self.burst = model.device.again(patience, || {
            let mut burst = model.ready(patience)?.configure_burst_with(options, patience)?;
            if let Some(caller) = caller {
                burst_hal::Burst::work_for(&mut burst, caller);
            }
            for memory in &memories {
                burst.push_ahead(memory, patience)?;
            }
            Ok(burst)
        })?;
        self.lost = false;
        Ok(())
    }

    /// The burst there is now.
    #[must_use]
    pub fn current(&self) -> &Burst {
        &self.burst
    }
}

#[deny(clippy::missing_trait_methods, reason = "all that the burst can do has to reach it")]
impl burst_hal::Burst for ReconnectingBurst {
    fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        let deadline = answer_by(options.deadline);
        match ReconnectingBurst::execute(self, request, options, deadline) {
            Ok(given) => result.clone_from(given),
            Err(error) => {
                tracing::debug!(%error, "execution failed");
                result.reset(error.status());
            }
        }
    }

    fn work_for(&mut self, caller: &Caller) {
        self.caller = Some(caller.clone());
        burst_hal::Burst::work_for(&mut self.burst, caller);
    }

    /// A service that is gone gets it with the first execution, which connects again.
    fn cache_memory(&mut self, memory: &Pool) {
        burst_hal::Burst::cache_memory(&mut self.burst, memory);
    }

    fn release_resources(&mut self) {
        burst_hal::Burst::release_resources(&mut self.burst);
    }
}
