use burst_camera::{Camera, LABELS};
use burst_client::{Client, default_socket_path};
use burst_tasks::{ImageClassifier, PictureView, TaskModel, TaskOptions};
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Client::connect(default_socket_path())?.device("cpu")?;
    let model = TaskModel::read("models/shapes.tflite")?;
    let options = TaskOptions::default().with_labels(LABELS).with_max_results(1);
    let mut classifier = ImageClassifier::new(&device, &model, &options)?;
    let (mut camera, mut rgb) = (Camera::new(1, 160, 120)?, vec![0; 160 * 120 * 3]);
    loop {
        camera.next_frame(&mut rgb)?;
        let classes = classifier.classify(PictureView::new(160, 120, &rgb)?)?;
        println!("{} {:.2}", classes[0].name(), classes[0].score);
    }
}
