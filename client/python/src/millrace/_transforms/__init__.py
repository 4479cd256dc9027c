"""Other libraries' transforms as recipes: torchvision's, timm's and Albumentations'."""
