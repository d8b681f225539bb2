//! Executions whose results come later.

use std::sync::Arc;

use burst_hal::trace::{Marks, SpanKind};
use burst_hal::{Caller, ExecutionOptions, Request};
use burst_wire::control::{Answer, Call};
use fmq::Deadline;

use super::{Copies, Executed, ModelHandle};
use crate::ClientError;
use crate::connection::{Ended, NotBegun};

/// What is called with the outcome of an execution.
pub(crate) type ExecutedCallback = Box<dyn FnOnce(Result<Executed, ClientError>) + Send>;

/// What an execution uses until its result has come: the service reads and writes it.
#[derive(Debug)]
struct InUse {
    request: Request,
    copies: Copies,
}

impl ModelHandle {
    /// Starts an execution. `callback` gets its outcome, exactly once: on the connection's thread for
    /// that, or, where nothing was started, on this one before it returns. Until then the memories of
    /// the request stay referenced, and this model. Launching takes until then at most, also where the deadline has
    /// passed: it is no execution. Once the caller cancels, the service is asked to give
    /// up; the outcome follows.
    ///
    /// # Errors
    /// It was not started, for the reason that `callback` got too. Where the service gave one, `callback`
    /// got it as the execution's status.
    pub(crate) fn start(
        self: &Arc<Self>,
        request: Request,
        options: &ExecutionOptions,
        caller: &Caller,
        until: Deadline,
        callback: ExecutedCallback,
    ) -> Result<(), ClientError> {
        let tracer = self.link.tracer();
        let mut marks = Marks::begin(tracer.as_deref());
        let (wire, copies) = match self.pack(&request, options, until.into()) {
            Ok(packed) => packed,
            Err(error) => {
                callback(Err(error.clone()));
                return Err(error);
            }
        };
        marks.mark(SpanKind::EncodeRequest);
        let in_use = Arc::new(InUse { request, copies });
        let link = self.link();
        let execution = match link.executions.begin(self.completion(&in_use, callback)) {
            Ok(execution) => execution,
            Err((why, complete)) => {
                let error = match why {
                    NotBegun::Closed => link.peer_died(),
                    NotBegun::NoThread(errno) => ClientError::System { call: "clone", errno },
                };
                complete(Ended::NotStarted(error.clone()));
                return Err(error);
            }
        };
        let call = Call::ExecuteAsynchronously { execution, request: wire };
        let mut late = None;
        let launched = link.launch(call, &in_use.copies.descriptors(), until, &mut late);
        marks.mark(SpanKind::Publish);
        let error = match launched {
            Ok((Answer::Done, _)) => {
                self.cancel_with(execution, caller);
                return Ok(());
            }
            Ok(_) => ClientError::UnexpectedAnswer,
            Err(error) => error,
        };
        let completion = match late {
            // The service may yet start it, or refuse it.
            Some(_) => link.executions.abandon(execution, in_use),
            // It was refused, or never sent: no reply and no result will come.
            None => link.executions.withdraw(execution),
        };
        if let Some(complete) = completion {
            complete(Ended::NotStarted(error.clone()));
        }
        Err(error)
    }

    /// What is done when the execution has ended: outputs are copied to where they belong, everything is
    /// let go of, and then the caller is told.
    fn completion(
        self: &Arc<Self>,
        in_use: &Arc<InUse>,
        callback: ExecutedCallback,
    ) -> Box<dyn FnOnce(Ended) + Send> {
        let (model, in_use) = (Arc::clone(self), Arc::clone(in_use));
        Box::new(move |ended| {
            let outcome = match ended {
                Ended::Executed(executed) => {
                    let tracer = model.link.tracer();
                    let mut marks = Marks::begin(tracer.as_deref());
                    let finished = in_use.copies.finish(&in_use.request, &executed);
                    marks.mark(SpanKind::DecodeResult);
                    finished
                }
                Ended::Lost => Err(model.link.peer_died()),
                Ended::NotStarted(ClientError::Refused { status, detail }) => {
                    tracing::debug!(%status, detail, "execution refused");
                    Ok(Executed::of(status))
                }
                Ended::NotStarted(error) => Err(error),
            };
            drop(in_use);
            drop(model);
            callback(outcome);
        })
    }

    /// Once the caller cancels, the service is asked to give the execution up.
    fn cancel_with(&self, execution: u32, caller: &Caller) {
        let link = Arc::downgrade(&self.link);
        let hook = caller.cancel_word().when_cancelled(move || {
            if let Some(link) = link.upgrade() {
                link.cancel_execution(execution);
            }
        });
        self.link.executions.attach(execution, hook);
    }
}
