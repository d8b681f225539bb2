//! A request to one device, from values.

use std::sync::Arc;

use burst_hal::{DataLocation, Dimensions, Pool, Request, RequestArgument, RequestPool};

use super::value::{Bytes, Value};
use crate::compiled::Port;

/// A request whose arguments are these values, one per port.
pub(super) fn request(
    (input_ports, inputs): (&[Port], &[Value]),
    (output_ports, outputs): (&[Port], &[Value]),
) -> Request {
    let mut pools = Pools::default();
    let inputs = input_ports.iter().zip(inputs);
    let inputs = inputs.map(|(port, value)| pools.argument(port, value, true)).collect();
    let outputs = output_ports.iter().zip(outputs);
    let outputs = outputs.map(|(port, value)| pools.argument(port, value, false)).collect();
    Request { inputs, outputs, pools: pools.pools }
}

/// The pools that arguments lie in, each once.
#[derive(Default)]
struct Pools {
    pools: Vec<RequestPool>,
}

impl Pools {
    fn argument(&mut self, port: &Port, value: &Value, is_input: bool) -> RequestArgument {
        // What the model knows the request need not say: requests in bursts are shorter then.
        let said = |dimensions: &Dimensions| match port.is_open {
            true => dimensions.clone(),
            false => Dimensions::new(),
        };
        match value {
            Value::Omitted => RequestArgument { has_no_value: true, ..RequestArgument::default() },
            Value::Bytes(Bytes { pool, offset, length, dimensions }) => {
                let exact = port.bytes(dimensions).and_then(|bytes| u32::try_from(bytes).ok());
                // Padding is the application's: no device hears of it.
                let length = exact.filter(|_| is_input).unwrap_or(*length);
                let location =
                    DataLocation { pool_index: self.memory(pool), offset: *offset, length };
                RequestArgument { location, dimensions: said(dimensions), has_no_value: false }
            }
            Value::Buffer(buffer, dimensions) => {
                let pool_index = self.token(buffer.token());
                let location = DataLocation { pool_index, ..DataLocation::default() };
                RequestArgument { location, dimensions: said(dimensions), has_no_value: false }
            }
        }
    }

    fn memory(&mut self, pool: &Pool) -> u32 {
        let is_same = |known: &RequestPool| match known {
            RequestPool::Memory(known) => Arc::ptr_eq(known, pool),
            RequestPool::Token(_) => false,
        };
        self.index(is_same, || RequestPool::Memory(Pool::clone(pool)))
    }

    fn token(&mut self, token: u32) -> u32 {
        let is_same =
            |known: &RequestPool| matches!(known, RequestPool::Token(one) if *one == token);
        self.index(is_same, || RequestPool::Token(token))
    }

    fn index(
        &mut self,
        is_same: impl Fn(&RequestPool) -> bool,
        new: impl FnOnce() -> RequestPool,
    ) -> u32 {
        let found = self.pools.iter().position(is_same);
        let index = found.unwrap_or_else(|| {
            self.pools.push(new());
            self.pools.len() - 1
        });
        u32::try_from(index).unwrap_or(u32::MAX)
    }
}
