//! Buffers of the device, by token.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use burst_hal::{Buffer, BufferRequest, ErrorStatus, Failure, Pool};

use super::Fault;

static BUFFERS: Mutex<BTreeMap<u32, Weak<FloorBuffer>>> = Mutex::new(BTreeMap::new());

struct FloorBuffer {
    fault: Fault,
    token: u32,
    value: Mutex<Option<Vec<u8>>>,
}

/// A buffer for one argument of a model of FLOOR.
pub(super) fn allocate(fault: Fault, request: &BufferRequest) -> Result<Arc<dyn Buffer>, Failure> {
    match fault {
        Fault::MakesNoBuffers => return Err(ErrorStatus::GeneralFailure.into()),
        Fault::CallsBuffersInvalid => return Err(ErrorStatus::InvalidArgument.into()),
        _ => {}
    }
    assert_eq!((request.models.len(), request.inputs.len() + request.outputs.len()), (1, 1));
    let mut buffers = BUFFERS.lock().unwrap_or_else(PoisonError::into_inner);
    let next = buffers.last_key_value().map_or(1, |(last, _)| last + 1);
    let token = if fault == Fault::OneTokenForAll { 1_000_000 } else { next };
    let buffer = Arc::new(FloorBuffer { fault, token, value: Mutex::default() });
    buffers.insert(token, Arc::downgrade(&buffer));
    Ok(buffer)
}

fn of(token: u32) -> Arc<FloorBuffer> {
    let buffers = BUFFERS.lock().unwrap_or_else(PoisonError::into_inner);
    buffers[&token].upgrade().expect("a buffer that lives")
}

pub(super) fn value(token: u32) -> Vec<u8> {
    of(token).value.lock().unwrap().clone().expect("a value")
}

pub(super) fn set_value(token: u32, bytes: &[u8]) {
    *of(token).value.lock().unwrap() = Some(bytes.to_vec());
}

impl Buffer for FloorBuffer {
    fn token(&self) -> u32 {
        self.token
    }

    fn copy_to(&self, destination: &Pool) -> Result<(), Failure> {
        let value = self.value.lock().unwrap();
        let mut value = value.clone().ok_or(Failure::general("no value"))?;
        if value.len() as u64 != destination.len() {
            return Err(Failure::invalid("another size"));
        }
        if self.fault == Fault::ForgetsBuffers {
            value.fill(0);
        }
        destination.write(0, &value).map_err(Failure::general)
    }

    fn copy_from(&self, source: &Pool, _dimensions: &[u32]) -> Result<(), Failure> {
        let mut value = vec![0; usize::try_from(source.len()).unwrap()];
        source.read(0, &mut value).map_err(Failure::general)?;
        *self.value.lock().unwrap() = Some(value);
        Ok(())
    }
}
