"""Reading HDF5 files that others have made: a dataset may refer to any file of the reader's disk."""

import os

import h5py

from .archives import most_unpacked


def own_dataset(file: h5py.File, name: str, path: str | os.PathLike) -> h5py.Dataset:
    """Returns a dataset whose numbers are in the file itself.

    Args:
        file: The file.
        name: The dataset.
        path: The file's name in errors.

    Raises:
        ValueError: If there is none, its numbers are in other files (links, external or virtual storage), or there are
            implausibly few bytes for its shape.
    """
    if isinstance(file.get(name, getlink=True), h5py.ExternalLink):
        raise ValueError(f"{path}: dataset {name} is a link to another file, which is not followed")
    found = file.get(name)
    if not isinstance(found, h5py.Dataset):
        raise ValueError(f"{path} has no dataset {name}")
    # by a link on the way to it, too, one gets into another file
    if found.file.filename != file.filename or found.external or found.is_virtual:
        raise ValueError(f"{path}: dataset {name} has its numbers in other files, which are not read")
    stored = found.id.get_storage_size()
    if found.nbytes > most_unpacked(stored):
        raise ValueError(f"{path}: dataset {name} has {stored:,} bytes for the {found.nbytes:,} of its shape")
    return found


__all__ = ["own_dataset"]
