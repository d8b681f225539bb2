//! A model whose inputs and outputs Python reads and writes by itself.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use burst_client::ClientError;
use burst_hal::session::{LayoutOptions, SessionLayout, SessionTensors, StatePhase};
use burst_hal::{Pool, PrepareOptions};
use burst_tasks::TaskModel;
use pyo3::prelude::*;

use crate::connection::{Connection, Found};
use crate::errors::{self, Class};
use crate::kinds::{Described, described};
use crate::memory;
use crate::private_driver::DriverProcess;
use crate::running::Running;
use crate::waiting::{aside, deadline, lock};

/// See `package/burst/model.py`.
#[pyclass(module = "burst._burst", frozen)]
pub(crate) struct Model {
    model: Arc<TaskModel>,
    device: String,
    layout: SessionLayout,
    inputs: Option<memory::Shared>,
    live: Mutex<Live>,
}

/// What is made again after a reconnection.
struct Live {
    running: Running,
    outputs: Py<PyAny>,
    /// Ends with the last that uses it, and after the connection.
    _process: Option<Arc<DriverProcess>>,
}

/// What was prepared, before Python has the outputs mapped.
struct Prepared {
    running: Running,
    outputs: Pool,
    process: Option<Arc<DriverProcess>>,
}

fn prepare(
    Found { device, process }: Found,
    model: &Arc<TaskModel>,
    layout: &SessionLayout,
    inputs: Option<Pool>,
) -> PyResult<Prepared> {
    let (model, layout) = (Arc::clone(model), layout.clone());
    let open = move || -> Result<(Running, Pool), ClientError> {
        let prepared = device.prepare(&model.imported.model, &PrepareOptions::default())?;
        let outputs = memory::output_pool(&prepared, layout.output_bytes())?;
        let tensors = SessionTensors::new(layout, inputs, Pool::clone(&outputs));
        Ok((Running::open(prepared, tensors)?, outputs))
    };
    aside(move || {
        let opened = open().map_err(|error| errors::of_client(&error, Class::Refused));
        opened.map(|(running, outputs)| Prepared { running, outputs, process })
    })
}

fn live(py: Python<'_>, Prepared { running, outputs, process }: Prepared) -> PyResult<Live> {
    Ok(Live { running, outputs: memory::outputs(py, &outputs)?, _process: process })
}

#[pymethods]
impl Model {
    #[staticmethod]
    fn load(
        py: Python<'_>,
        connection: &Connection,
        file: PathBuf,
        device: String,
    ) -> PyResult<Self> {
        let (model, found, layout) = py.detach(|| {
            let model = TaskModel::read(&file);
            let model = model.map_err(|error| errors::of_task(error, Class::BadModel))?;
            let found = connection.device(&device)?;
            let layout = SessionLayout::new(&model.imported.model, &LayoutOptions::default());
            let layout = layout.map_err(|error| {
                errors::raise(Class::BadModel, &format!("{}: {error}", model.name))
            })?;
            PyResult::Ok((Arc::new(model), found, layout))
        })?;
        let bytes = layout.input_bytes();
        let inputs = (bytes > 0).then(|| memory::inputs(py, bytes)).transpose()?;
        let pool = inputs.as_ref().map(|inputs| Pool::clone(&inputs.pool));
        let prepared = py.detach(|| prepare(found, &model, &layout, pool))?;
        let live = Mutex::new(live(py, prepared)?);
        Ok(Model { model, device, layout, inputs, live })
    }

    /// Everything again over the connection that there is now; inputs keep their memory and what was written to it.
    fn renew(&self, py: Python<'_>, connection: &Connection) -> PyResult<()> {
        let pool = self.inputs.as_ref().map(|inputs| Pool::clone(&inputs.pool));
        let prepared = py.detach(|| {
            let found = connection.device(&self.device)?;
            prepare(found, &self.model, &self.layout, pool)
        })?;
        let live = live(py, prepared)?;
        // What was before hangs up, which need not keep the interpreter.
        py.detach(|| {
            let before = std::mem::replace(&mut *lock(&self.live)?, live);
            drop(before);
            Ok(())
        })
    }

    fn name(&self) -> &str {
        &self.model.name
    }

    fn labels(&self) -> Vec<String> {
        self.model.labels.clone()
    }

    fn inputs(&self) -> PyResult<Vec<Described>> {
        let slot = |index| self.layout.input_slot(0, index);
        let places =
            (0..self.layout.inputs().len()).map(|index| (slot(index).offset, slot(index).length));
        described(&self.model, &self.model.imported.inputs, &places.collect::<Vec<_>>())
    }

    fn outputs(&self) -> PyResult<Vec<Described>> {
        let slot = |index| self.layout.output_slot(index, StatePhase::Initial);
        let places =
            (0..self.layout.outputs().len()).map(|index| (slot(index).offset, slot(index).length));
        described(&self.model, &self.model.imported.outputs, &places.collect::<Vec<_>>())
    }

    fn input_mapping(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.inputs.as_ref().map(|inputs| inputs.mapping.clone_ref(py))
    }

    fn output_mapping(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        py.detach(|| {
            let live = lock(&self.live)?;
            Ok(Python::attach(|py| live.outputs.clone_ref(py)))
        })
    }

    fn run(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<()> {
        let deadline = deadline(timeout)?;
        py.detach(|| lock(&self.live)?.running.run(deadline))
    }

    fn descriptor(&self, py: Python<'_>) -> PyResult<i32> {
        py.detach(|| lock(&self.live)?.running.descriptor())
    }

    fn start(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let deadline = deadline(timeout)?;
        py.detach(|| lock(&self.live)?.running.start(deadline))
    }

    fn is_over(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| lock(&self.live)?.running.is_over())
    }

    fn driver_time(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let time = py.detach(|| PyResult::Ok(lock(&self.live)?.running.driver_time()))?;
        Ok(time.map(|time| time.as_secs_f64()))
    }

    fn driver_pid(&self, py: Python<'_>) -> PyResult<u32> {
        py.detach(|| Ok(lock(&self.live)?.running.driver_pid()))
    }
}
