//! A prepared model over a route.

use std::sync::Arc;

use crate::{Burst, ExecutionOptions, ExecutionResult, Failure, PreparedModel, Request, Route};

/// A prepared model, executed over the route that it was opened for.
pub struct Executor(Call);

/// What carries a request.
enum Call {
    Synchronous(Arc<dyn PreparedModel>),
    /// One burst for all requests, so that their memory keeps its slots.
    Burst(Box<dyn Burst>),
}

impl Executor {
    /// Opens a route to a prepared model.
    ///
    /// # Errors
    /// There is no burst.
    pub fn open(prepared: Arc<dyn PreparedModel>, route: Route) -> Result<Self, Failure> {
        Ok(Executor(match route {
            Route::Synchronous => Call::Synchronous(prepared),
            Route::Burst => Call::Burst(prepared.open_burst()?),
        }))
    }

    /// The route.
    #[must_use]
    pub fn route(&self) -> Route {
        match self.0 {
            Call::Synchronous(_) => Route::Synchronous,
            Call::Burst(_) => Route::Burst,
        }
    }

    /// Runs once; the result is written into `result`, whose storage a burst uses again. Every
    /// failure is a status in the result.
    pub fn execute(
        &mut self,
        request: &Request,
        options: &ExecutionOptions,
        result: &mut ExecutionResult,
    ) {
        match &mut self.0 {
            Call::Synchronous(model) => *result = model.execute_synchronously(request, options),
            Call::Burst(burst) => burst.execute(request, options, result),
        }
    }
}
