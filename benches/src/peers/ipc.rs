//! ipc-channel: bytes over its channels, which are Unix sockets here.

use burst_harness::transport::names;
use burst_harness::transport::session::{Measured, Served};
use burst_harness::transport::work::AnswerBytes;
use burst_harness::{Case, ClientEnd, ClientSession, HarnessError, Peer, ServerSession, WaitKind};
use ipc_channel::ipc::{
    IpcBytesReceiver, IpcBytesSender, IpcOneShotServer, IpcSender, bytes_channel,
};

/// Two channels of bytes.
#[derive(Debug)]
pub struct IpcChannel;

impl Peer for IpcChannel {
    fn name(&self) -> &'static str {
        names::IPC_CHANNEL
    }

    fn supports(&self, case: &Case) -> bool {
        case.wait == WaitKind::Sleep && case.in_flight == 1
    }

    fn client(&self, session: ClientSession<'_>) -> Result<Measured, HarnessError> {
        let (server, name) = IpcOneShotServer::new()?;
        session.link.send(&name, &[])?;
        let (_, (requests, answers)): (_, Ends) = server.accept().map_err(HarnessError::peer)?;
        session.run(&mut End { requests, answers })
    }

    fn server(&self, mut session: ServerSession<'_>) -> Result<Served, HarnessError> {
        let (name, _): (String, _) = session.link.receive()?;
        let to_client: IpcSender<Ends> = IpcSender::connect(name)?;
        let (request_sender, requests) = bytes_channel()?;
        let (answers, answer_receiver) = bytes_channel()?;
        to_client.send((request_sender, answer_receiver)).map_err(HarnessError::peer)?;
        session.run(|work| {
            let request = requests.recv().map_err(HarnessError::peer)?;
            Ok(answers.send(&work.answer(&request))?)
        })
    }
}

type Ends = (IpcBytesSender, IpcBytesReceiver);

struct End {
    requests: IpcBytesSender,
    answers: IpcBytesReceiver,
}

impl ClientEnd for End {
    fn send(&mut self, request: &[u8]) -> Result<(), HarnessError> {
        Ok(self.requests.send(request)?)
    }

    fn receive(&mut self, answer: &mut AnswerBytes) -> Result<(), HarnessError> {
        let bytes = self.answers.recv().map_err(HarnessError::peer)?;
        let (got, expected) = (bytes.len(), answer.len());
        let bytes = bytes.try_into().map_err(|_| HarnessError::WrongLength { got, expected })?;
        *answer = bytes;
        Ok(())
    }
}
