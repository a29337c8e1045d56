from transformers import AlbertTokenizer


class LineageAlbertTokenizer(AlbertTokenizer):
    pass
