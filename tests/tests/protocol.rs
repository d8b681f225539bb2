//! `docs/PROTOCOL.md` is true and complete: a client that was written from it alone gets everything
//! it is owed, and the example is what really crosses the boundary.

mod protocol_client;
