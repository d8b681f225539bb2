//! What ROI_ALIGN and ROI_POOLING share: regions of a feature map that become maps of one size.

use burst_hal::Dimensions;

use crate::OpError;
use crate::op::{Inferred, Operands, Parsed, Run};
use crate::ops::attributes::{Layout, positive_float, positive_i32};
use crate::ops::detection::boxes::{Corners, expect_ordered};
use crate::ops::detection::reals::{Reals, expect, expect_eighths};
use crate::tensor::{Args, TensorRef};

/// How far apart neighbours along each axis of a picture lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Strides {
    pub(super) batch: usize,
    pub(super) row: usize,
    pub(super) column: usize,
    pub(super) channel: usize,
}

impl Strides {
    fn new(height: usize, width: usize, depth: usize, layout: Layout) -> Self {
        let batch = height * width * depth;
        match layout {
            Layout::Nhwc => Strides { batch, row: width * depth, column: depth, channel: 1 },
            Layout::Nchw => Strides { batch, row: width, column: 1, channel: height * width },
        }
    }

    /// Where channel 0 of a pixel lies.
    pub(super) fn at(&self, batch: usize, row: usize, column: usize) -> usize {
        batch * self.batch + row * self.row + column * self.column
    }
}

/// The sizes of an operation on regions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Regions {
    pub(super) batches: usize,
    pub(super) height: usize,
    pub(super) width: usize,
    pub(super) depth: usize,
    /// How many regions.
    pub(super) count: usize,
    pub(super) out_height: usize,
    pub(super) out_width: usize,
    /// Pixels of the image per pixel of the map.
    ratios: [f32; 2],
    layout: Layout,
}

/// The attributes of an operation on regions.
#[derive(Debug, Clone, Copy)]
pub(super) struct RegionAttributes {
    /// How maps are stored.
    layout: Layout,
    out_height: u32,
    out_width: u32,
    /// Pixels of the image per pixel of the map: vertical, horizontal.
    ratios: [f32; 2],
}

impl RegionAttributes {
    /// Parses the operands; the layout is at input `layout`.
    pub(super) fn parse(operands: &dyn Operands, layout: usize) -> Result<Self, OpError> {
        Ok(RegionAttributes {
            layout: Layout::required(operands, layout)?,
            out_height: positive_i32(operands, 3, "output height")?,
            out_width: positive_i32(operands, 4, "output width")?,
            ratios: [
                positive_float(operands, 5, "height ratio")?,
                positive_float(operands, 6, "width ratio")?,
            ],
        })
    }
}

impl Regions {
    /// The sizes for a map, regions and batch indexes of these shapes.
    fn new(
        attributes: &RegionAttributes,
        map: &[u32],
        rois: &[u32],
        split: &[u32],
    ) -> Result<(Self, Dimensions), OpError> {
        let RegionAttributes { layout, out_height, out_width, ratios } = *attributes;
        let sizes = <[u32; 4]>::try_from(map)
            .map_err(|_| OpError::shape("a feature map has 4 dimensions", map, &[0; 4]))?;
        expect(!map.contains(&0), "a feature map must not be empty", map)?;
        let [batches, height, width, depth] = layout.sizes(sizes);
        let [count, 4] = *rois else {
            return Err(OpError::shape("regions are rows of 4", rois, &[0, 4]));
        };
        if *split != [count] {
            return Err(OpError::shape("one batch index per region", split, &[count]));
        }
        let regions = Regions {
            batches: batches as usize,
            height: height as usize,
            width: width as usize,
            depth: depth as usize,
            count: count as usize,
            out_height: out_height as usize,
            out_width: out_width as usize,
            ratios,
            layout,
        };
        let dims = layout.shape([count, out_height, out_width, depth]);
        Ok((regions, Dimensions::from_slice(&dims)))
    }

    /// The shape of the only output; quantized regions have their scale.
    pub(super) fn infer(
        args: &Args<'_>,
        attributes: Parsed<'_, RegionAttributes>,
    ) -> Result<Inferred, OpError> {
        expect_eighths(args.input(1)?.info)?;
        let (map, rois, split) = (args.dims(0)?, args.dims(1)?, args.dims(2)?);
        Regions::new(attributes?, map, rois, split).map(|(_, dims)| Inferred::one(dims))
    }

    pub(super) fn map_strides(&self) -> Strides {
        Strides::new(self.height, self.width, self.depth, self.layout)
    }

    pub(super) fn out_strides(&self) -> Strides {
        Strides::new(self.out_height, self.out_width, self.depth, self.layout)
    }

    /// Region `index`: its batch, and its corners in pixels of the map.
    ///
    /// # Errors
    /// [`OpError::Range`] for a batch that the map does not have, corners outside of the map, and
    /// corners in the wrong order.
    pub(super) fn region(
        &self,
        rois: &Reals<'_>,
        split: &[i32],
        index: usize,
    ) -> Result<(usize, Corners), OpError> {
        let batch = usize::try_from(split[index]).ok().filter(|batch| *batch < self.batches);
        let batch = batch.ok_or(OpError::value("batch index of a region", split[index]))?;
        let corners = rois.quad(index);
        expect_ordered(corners)?;
        let [x1, y1, x2, y2] = corners;
        let [vertical, horizontal] = self.ratios;
        let scaled = [x1 / horizontal, y1 / vertical, x2 / horizontal, y2 / vertical];
        #[allow(clippy::cast_precision_loss, reason = "compared with a coordinate in f32")]
        let inside = x1 >= 0.0
            && y1 >= 0.0
            && scaled[2] <= self.width as f32
            && scaled[3] <= self.height as f32;
        if !inside {
            return Err(OpError::Range { what: "a region that leaves the feature map" });
        }
        Ok((batch, scaled))
    }
}

/// The three tensors that regions are read from.
pub(super) struct Source<'a> {
    pub(super) map: TensorRef<'a>,
    pub(super) rois: Reals<'a>,
    pub(super) split: &'a [i32],
}

impl<'a> Source<'a> {
    pub(super) fn of(run: &Run<'_, 'a>) -> Result<Self, OpError> {
        Ok(Source {
            map: run.input(0)?,
            rois: Reals::of(&run.input(1)?)?,
            split: run.input(2)?.i32()?,
        })
    }

    /// As [`Regions::new`], with the shapes of this run.
    pub(super) fn regions(
        &self,
        run: &Run<'_, 'a>,
        attributes: &RegionAttributes,
    ) -> Result<Regions, OpError> {
        let (rois, split) = (run.input(1)?.dims, run.input(2)?.dims);
        Regions::new(attributes, self.map.dims, rois, split).map(|(regions, _)| regions)
    }
}
