//! Which call of a driver carries a request.

/// How a request travels to a driver: which call of a prepared model carries it.
///
/// Where the driver is, in this process or behind a socket, is not a matter of the route but of
/// the [`Device`](crate::Device): every route leads to either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Route {
    /// [`PreparedModel::execute_synchronously`](crate::PreparedModel::execute_synchronously), one
    /// call for each request. To another process: one message over the control socket each way.
    Synchronous,
    /// [`PreparedModel::execute_asynchronously`](crate::PreparedModel::execute_asynchronously), one
    /// call for each request, and its callback. To another process: one message over the control
    /// socket there, and two back.
    Asynchronous,
    /// A [`Burst`](crate::Burst), which keeps its resources between requests. To another process:
    /// one packet through shared memory each way.
    #[default]
    Burst,
    /// [`PreparedModel::execute_fenced`](crate::PreparedModel::execute_fenced), one call for each
    /// request, its fence, and the question what came of it. Outputs need known sizes. To another process:
    /// two messages over the control socket each way.
    Fenced,
}

impl Route {
    /// Every route.
    pub const ALL: [Route; 4] =
        [Route::Synchronous, Route::Asynchronous, Route::Burst, Route::Fenced];

    /// The name in reports and on command lines: `sync`, `async`, `burst` or `fenced`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Route::Synchronous => "sync",
            Route::Asynchronous => "async",
            Route::Burst => "burst",
            Route::Fenced => "fenced",
        }
    }
}

impl std::fmt::Display for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
