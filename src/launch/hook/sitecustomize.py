# Placed here by `pipetop run`, only for the command that it launched; removed when that ends.
#
# Every Python below that command runs this at its start, so it does almost nothing: it makes sure that pipetop_hook is
# loaded once torch's DataLoader or another loader is, and then loads the sitecustomize that would have run.
import sys

_HERE = __file__.rpartition("/")[0]
# Methods of other loaders that hand over a batch: MODULE:CLASS.METHOD, from loaders.toml.
_HAND_OVER = []
_MODULES = tuple(place.partition(":")[0].rstrip("*") for place in _HAND_OVER)
_TORCH = "torch.utils.data.dataloader"
_asking = False


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == _TORCH or name.startswith(_MODULES):
            return _loader_module(name, path, target)
        if name in ("pipetop_hook", "pipetop_hook_device", "pipetop_hook_trial"):
            from importlib.machinery import PathFinder

            return PathFinder.find_spec(name, [_HERE])
        return None


def _loader_module(name, path, target):
    # Returns the spec that the other finders return, changed so that it calls us after the module has run. The module
    # keeps its own loader, and our finder stays in the list, because another thread may be iterating over it. One of
    # the other finders may call us in turn.
    global _asking
    if _asking:
        return None
    _asking = True
    try:
        for finder in sys.meta_path:
            find_spec = None if finder is _Finder else getattr(finder, "find_spec", None)
            spec = find_spec and find_spec(name, path, target)
            if spec is not None:
                _call_us(spec.loader)
                return spec
    finally:
        _asking = False
    return None


def _call_us(loader):
    try:
        execute = loader.exec_module

        def exec_module(module):
            vars(loader).pop("exec_module", None)
            execute(module)
            try:
                import pipetop_hook

                if module.__name__ == _TORCH:
                    pipetop_hook.install(module)
                else:
                    pipetop_hook.install_others(module, _HAND_OVER)
            except Exception:
                # pipetop has ended and removed its files: reports are not wanted any more.
                pass

        loader.exec_module = exec_module
    except Exception:
        # A loader that cannot be changed: the script runs without us.
        pass


try:
    # As if we were not here: this folder is found through _Finder alone.
    sys.path[:] = [path for path in sys.path if path != _HERE]
    sys.meta_path.insert(0, _Finder)
except Exception:
    pass
# The next sitecustomize takes our name and place. Its exceptions, and the error if there is none, go to Python's
# site.py as usual.
sys.modules.pop("sitecustomize", None)
import sitecustomize  # noqa: E402, F401
