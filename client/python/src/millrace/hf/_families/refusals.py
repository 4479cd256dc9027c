"""Classes of processors that are not supported, and why. By the name without ``ImageProcessor``."""

from __future__ import annotations

_TWICE = "it resizes every image twice, and the daemon makes a tensor in one step"
_FLOATS = "it resizes pixels that are scaled or normalised already, without antialiasing, which is another filter than any of the daemon's"
_FLAT = "it makes an image smaller without antialiasing, which no filter of the daemon does"
_PAIRS = "it takes pairs of grey pictures, and computes the grey itself in floating point"
_OWN_TILES = "it cuts images into tiles in a way that is not built here"
_OWN_ROWS = "its rows of pixels come in an order that is not built here"
_MARGINS = "it cuts an image's margins off by what is in them, and resizes it twice"
_COLUMNS = "its rows are strips of lines of text whose width depends on the whole call"

REFUSED: dict[str, str] = {
    "CHMv2": "it leaves images in their own sizes, and pads each to whole patches",
    "DeepseekOcr2": _OWN_TILES,
    "DeepseekVLHybrid": "it makes each image in two resolutions",
    "DepthPro": _FLOATS,
    "Donut": "it resizes long pages twice, and the daemon makes a tensor in one step",
    "EfficientLoFTR": _PAIRS,
    "Emu3": "it pads images for a tokenizer of its own",
    "Eomt": "it splits images for segmentation, and gives the places of the parts",
    "Fuyu": "its images are cut and counted together with a tokenizer",
    "Gemma4Unified": _OWN_ROWS,
    "Glm5Next": "its bounds count tokens, not pixels",
    "GlmImage": "it halves images for a generator of images, and refuses long ones",
    "GraniteDocling": _OWN_TILES,
    "Idefics3": _TWICE,
    "ImageGPT": "it gives the numbers of colours in a palette, not pixels",
    "Inkling": _OWN_ROWS,
    "Inkling2": _OWN_ROWS,
    "Kimi_K25": "it pads images to whole groups of patches",
    "Kosmos2_5": "it normalises each image by its own mean and deviation",
    "Lfm2Vl": _OWN_TILES,
    "LightGlue": _PAIRS,
    "Llama4": "it computes in bfloat16, and only there; its tiles are not built here",
    "MiniCPMOcr": _OWN_TILES,
    "MiniCPMV4_6": _OWN_TILES,
    "Molmo2": "its tiles overlap",
    "MuseGlimmer": "it chooses sizes in a way that is not built here",
    "NemotronH_Omni_Reasoning_V3": _OWN_TILES,
    "NeoMME": _OWN_ROWS,
    "Nougat": _MARGINS,
    "Owlv2": "it pads images first, and resizes them with a filter of SciPy's",
    "PPDocLayoutV2": _FLAT,
    "PPDocLayoutV3": _FLAT,
    "PPDocLayoutV4": _FLOATS,
    "PPFormulaNet": _MARGINS,
    "PPLCNet": "it chooses sizes in a way that is not built here, and its channels change places after they are normalised",
    "PPOCRV5ServerDet": _FLOATS,
    "PPOCRV5ServerRec": _COLUMNS,
    "PPOCRV6SmallRec": _COLUMNS,
    "PerceptionLM": _OWN_TILES,
    "Phi4Multimodal": _OWN_TILES,
    "Pix2Struct": "it normalises each image by its own mean and deviation",
    "RfDetr": _FLOATS,
    "SLANeXt": "it chooses sizes and pads in a way that is not built here",
    "SmolVLM": _TWICE,
    "Step3p7": "its windows on a large image are not known here",
    "SuperGlue": _PAIRS,
    "Swin2SR": "it leaves images in their own sizes, and pads by mirroring pixels",
    "TimmWrapper": "its configuration is a model's, which timm reads: use timm's transform with millrace.torch.from_timm",
    "Tvp": "it takes videos whose frames it pads before it swaps their channels",
    "UVDoc": _FLOATS,
    "UltraVBert": _TWICE,
    "UnlimitedOcr": _OWN_TILES,
    "VideoLlava": "it takes videos and images of two kinds at once, and is of an older interface",
    "VitMatte": "it takes a map of what is certain beside each image, as a fourth channel",
    "VitPose": "it warps boxes out of the image by an affine map",
    "Vivit": "it is of an older interface, and shifts pixels of videos before it normalises them",
    "ZoeDepth": "it pads by mirroring pixels before it resizes",
}
