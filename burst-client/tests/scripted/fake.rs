//! A service in a thread that answers each call as a test says, and a client of it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use burst_client::{Client, RemoteDevice, RemotePreparedModel, ShmMemory};
use burst_hal::{
    Capabilities, DataLocation, Device, Failure, Model, ModelBuilder, OperandType, OperationType,
    OutputSpec, Pool, PrepareOptions, PrepareResult, Request, RequestArgument, RequestPool,
};
use burst_wire::Features;
use burst_wire::control::{
    Answer, Call, ClientMessage, DeviceInfo, List, Reply, ServerGreeting, ServerMessage, Text,
    decode, encode,
};
use burst_wire::socket::{self, Inbox};

/// Far longer than anything here takes: it only turns a hang into a failure.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// What becomes of a call.
pub(crate) enum Said {
    Nothing,
    Answer(Answer),
    With(Answer, Vec<OwnedFd>),
}

struct Fake;

impl Device for Fake {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn version_string(&self) -> &'static str {
        "1"
    }

    fn supported_operations(&self, _: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Err(Failure::general("nobody prepares here"))
    }
}

/// A client of such a service.
pub(crate) struct Scripted {
    pub(crate) client: Client,
    /// What the service was asked beside what everybody asks.
    calls: Receiver<Call>,
}

impl Scripted {
    /// `script` answers what is not the same for every test; `None` is an acknowledgement.
    pub(crate) fn start(script: impl FnMut(&Call) -> Option<Said> + Send + 'static) -> Scripted {
        let (ours, theirs) = socket::pair().unwrap();
        let (tell, calls) = channel();
        std::thread::spawn(move || serve(&theirs, script, |call| drop(tell.send(call))));
        Scripted { client: Client::from_socket(ours).unwrap(), calls }
    }

    pub(crate) fn device(&self) -> RemoteDevice {
        self.client.device("fake").unwrap()
    }

    pub(crate) fn prepared(&self) -> Arc<RemotePreparedModel> {
        self.device().prepare(&model(), &PrepareOptions::default()).unwrap()
    }

    /// The next call that is of this kind.
    pub(crate) fn asked<T>(&self, kind: impl Fn(&Call) -> Option<T>) -> T {
        loop {
            let call = self.calls.recv_timeout(LONG).expect("no such call came");
            if let Some(found) = kind(&call) {
                return found;
            }
        }
    }

    /// The memory that the service was asked to make next, which it was then told to forget.
    pub(crate) fn is_made_and_forgotten(&self) {
        let made = self.asked(|call| match call {
            Call::AllocateMemory { memory, .. } => Some(*memory),
            _ => None,
        });
        let forgotten = self.asked(|call| match call {
            Call::ForgetMemory { memory } => Some(*memory),
            _ => None,
        });
        assert_eq!(made, forgotten, "the service keeps nothing of it");
    }
}

fn serve(socket: &OwnedFd, mut script: impl FnMut(&Call) -> Option<Said>, tell: impl Fn(Call)) {
    let mut inbox = Inbox::default();
    socket::receive(socket, &mut inbox).unwrap();
    let greeting = ServerGreeting::accepting(Features::ALL, "scripted").encode().unwrap();
    socket::send(socket, &greeting, &[]).unwrap();
    // What was given away stays open here, too: a client in the same process that lacks descriptors gets none by it.
    let (mut kept, mut given) = (Vec::new(), Vec::new());
    while socket::receive(socket, &mut inbox).is_ok() {
        let Ok(ClientMessage::Call { id, call }) = decode(inbox.message()) else { continue };
        kept.push(inbox.take_descriptors());
        let said = script(&call).unwrap_or_else(|| Said::Answer(usual(&call)));
        let (answer, descriptors) = match said {
            Said::Nothing => (None, Vec::new()),
            Said::Answer(answer) => (Some(answer), Vec::new()),
            Said::With(answer, descriptors) => (Some(answer), descriptors),
        };
        if let Some(answer) = answer {
            let reply = ServerMessage::Reply(Reply { id, outcome: Ok(answer) });
            let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
            let _ = socket::send(socket, &encode(&reply).unwrap(), &borrowed);
            given.push(descriptors);
        }
        tell(call);
    }
}

fn usual(call: &Call) -> Answer {
    match call {
        Call::ListDevices => Answer::Devices(List(vec![Text::cut("fake")])),
        Call::DeviceInfo { .. } => Answer::Device(DeviceInfo::new(&Fake, &Capabilities::default())),
        Call::Prepare { .. } => Answer::Prepared { model: 1 },
        Call::ConfigureBurst { .. } => Answer::Burst { burst: 1 },
        _ => Answer::Done,
    }
}

fn model() -> Model {
    let mut builder = ModelBuilder::new();
    let x = builder.input(OperandType::TensorFloat32, &[4]);
    let y = builder.result_of(OperationType::Relu, &[x], OutputSpec::f32(&[4]));
    builder.output(y);
    builder.build().unwrap()
}

/// Memory for a request, and that request.
pub(crate) fn request() -> (Pool, Request) {
    let memory: Pool = Arc::new(ShmMemory::create(128).unwrap());
    let argument = |offset| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length: 16 },
        ..RequestArgument::default()
    };
    let pools = vec![RequestPool::Memory(Pool::clone(&memory))];
    (memory, Request { inputs: vec![argument(0)], outputs: vec![argument(64)], pools })
}
