# Written by `make stubs` from the table of tenfold/train/__init__.py.

from tenfold.ops.generated_ops import sdca_fprint
from tenfold.ops.generated_ops import sdca_optimizer
from tenfold.ops.generated_ops import sdca_shrink_l1
from tenfold.summary.summary_iterator import summary_iterator
from tenfold.train import experimental
from tenfold.train.adadelta import AdadeltaOptimizer
from tenfold.train.adagrad import AdagradOptimizer
from tenfold.train.adagrad_da import AdagradDAOptimizer
from tenfold.train.adagrad_decay import AdagradDecayOptimizer
from tenfold.train.adagrad_decay_v2 import AdagradDecayOptimizerV2
from tenfold.train.adam import AdamOptimizer
from tenfold.train.adam_async import AdamAsyncOptimizer
from tenfold.train.basic_loops import basic_train_loop
from tenfold.train.checkpoint_management import checkpoint_exists
from tenfold.train.checkpoint_management import generate_checkpoint_state_proto
from tenfold.train.checkpoint_management import get_checkpoint_mtimes
from tenfold.train.checkpoint_management import get_checkpoint_state
from tenfold.train.checkpoint_management import latest_checkpoint
from tenfold.train.checkpoint_management import remove_checkpoint
from tenfold.train.checkpoint_management import update_checkpoint_state
from tenfold.train.checkpoint_utils import NewCheckpointReader
from tenfold.train.checkpoint_utils import checkpoints_iterator
from tenfold.train.checkpoint_utils import init_from_checkpoint
from tenfold.train.checkpoint_utils import list_variables
from tenfold.train.checkpoint_utils import load_checkpoint
from tenfold.train.checkpoint_utils import load_variable
from tenfold.train.coordinator import Coordinator
from tenfold.train.coordinator import LooperThread
from tenfold.train.device_setter import replica_device_setter
from tenfold.train.ftrl import FtrlOptimizer
from tenfold.train.gradient_descent import GradientDescentOptimizer
from tenfold.train.hooks import CheckpointSaverHook
from tenfold.train.hooks import CheckpointSaverListener
from tenfold.train.hooks import FeedFnHook
from tenfold.train.hooks import FinalOpsHook
from tenfold.train.hooks import GlobalStepWaiterHook
from tenfold.train.hooks import LoggingTensorHook
from tenfold.train.hooks import NanLossDuringTrainingError
from tenfold.train.hooks import NanTensorHook
from tenfold.train.hooks import ProfilerHook
from tenfold.train.hooks import SecondOrStepTimer
from tenfold.train.hooks import StepCounterHook
from tenfold.train.hooks import StopAtStepHook
from tenfold.train.hooks import SummarySaverHook
from tenfold.train.input import batch
from tenfold.train.input import batch_join
from tenfold.train.input import input_producer
from tenfold.train.input import limit_epochs
from tenfold.train.input import match_filenames_once
from tenfold.train.input import maybe_batch
from tenfold.train.input import maybe_batch_join
from tenfold.train.input import maybe_shuffle_batch
from tenfold.train.input import maybe_shuffle_batch_join
from tenfold.train.input import range_input_producer
from tenfold.train.input import shuffle_batch
from tenfold.train.input import shuffle_batch_join
from tenfold.train.input import slice_input_producer
from tenfold.train.input import string_input_producer
from tenfold.train.learning_rate_decay import cosine_decay
from tenfold.train.learning_rate_decay import cosine_decay_restarts
from tenfold.train.learning_rate_decay import exponential_decay
from tenfold.train.learning_rate_decay import inverse_time_decay
from tenfold.train.learning_rate_decay import linear_cosine_decay
from tenfold.train.learning_rate_decay import natural_exp_decay
from tenfold.train.learning_rate_decay import noisy_linear_cosine_decay
from tenfold.train.learning_rate_decay import piecewise_constant
from tenfold.train.learning_rate_decay import piecewise_constant_decay
from tenfold.train.learning_rate_decay import polynomial_decay
from tenfold.train.meta_graph import export_meta_graph
from tenfold.train.momentum import MomentumOptimizer
from tenfold.train.monitored_session import MonitoredSession
from tenfold.train.monitored_session import MonitoredTrainingSession
from tenfold.train.monitored_session import SingularMonitoredSession
from tenfold.train.moving_averages import ExponentialMovingAverage
from tenfold.train.optimizer import Optimizer
from tenfold.train.proximal_adagrad import ProximalAdagradOptimizer
from tenfold.train.proximal_gradient_descent import ProximalGradientDescentOptimizer
from tenfold.train.queue_runner import QueueRunner
from tenfold.train.queue_runner import add_queue_runner
from tenfold.train.queue_runner import start_queue_runners
from tenfold.train.rmsprop import RMSPropOptimizer
from tenfold.train.safetensors_files import export_safetensors
from tenfold.train.safetensors_files import load_safetensors
from tenfold.train.safetensors_files import restore_safetensors
from tenfold.train.saver import Saver
from tenfold.train.saver import import_meta_graph
from tenfold.train.scaffold import Scaffold
from tenfold.train.server_lib import Server
from tenfold.train.session_creators import ChiefSessionCreator
from tenfold.train.session_creators import SessionCreator
from tenfold.train.session_creators import WorkerSessionCreator
from tenfold.train.session_manager import SessionManager
from tenfold.train.session_run_hook import SessionRunArgs
from tenfold.train.session_run_hook import SessionRunContext
from tenfold.train.session_run_hook import SessionRunHook
from tenfold.train.session_run_hook import SessionRunValues
from tenfold.train.supervisor import Supervisor
from tenfold.train.sync_replicas import SyncReplicasOptimizer
from tenfold.train.training_util import assert_global_step
from tenfold.train.training_util import create_global_step
from tenfold.train.training_util import get_global_step
from tenfold.train.training_util import get_or_create_global_step
from tenfold.train.training_util import global_step
from tenfold.train.warm_starting import VocabInfo
from tenfold.train.warm_starting import warm_start
from tenfold.train.weight_decay import AdamWOptimizer
from tenfold.train.write_graph import write_graph
from tenfold_core.cluster_spec import ClusterSpec
from tenfold_protos.cluster_pb2 import ClusterDef
from tenfold_protos.cluster_pb2 import JobDef
from tenfold_protos.example_pb2 import Example
from tenfold_protos.example_pb2 import SequenceExample
from tenfold_protos.feature_pb2 import BytesList
from tenfold_protos.feature_pb2 import Feature
from tenfold_protos.feature_pb2 import FeatureList
from tenfold_protos.feature_pb2 import FeatureLists
from tenfold_protos.feature_pb2 import Features
from tenfold_protos.feature_pb2 import FloatList
from tenfold_protos.feature_pb2 import Int64List
from tenfold_protos.saver_pb2 import SaverDef
from tenfold_protos.tensorflow_server_pb2 import ServerDef

__all__ = [
    "AdadeltaOptimizer",
    "AdagradDAOptimizer",
    "AdagradDecayOptimizer",
    "AdagradDecayOptimizerV2",
    "AdagradOptimizer",
    "AdamAsyncOptimizer",
    "AdamOptimizer",
    "AdamWOptimizer",
    "BytesList",
    "CheckpointSaverHook",
    "CheckpointSaverListener",
    "ChiefSessionCreator",
    "ClusterDef",
    "ClusterSpec",
    "Coordinator",
    "Example",
    "ExponentialMovingAverage",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FeedFnHook",
    "FinalOpsHook",
    "FloatList",
    "FtrlOptimizer",
    "GlobalStepWaiterHook",
    "GradientDescentOptimizer",
    "Int64List",
    "JobDef",
    "LoggingTensorHook",
    "LooperThread",
    "MomentumOptimizer",
    "MonitoredSession",
    "MonitoredTrainingSession",
    "NanLossDuringTrainingError",
    "NanTensorHook",
    "NewCheckpointReader",
    "Optimizer",
    "ProfilerHook",
    "ProximalAdagradOptimizer",
    "ProximalGradientDescentOptimizer",
    "QueueRunner",
    "RMSPropOptimizer",
    "Saver",
    "SaverDef",
    "Scaffold",
    "SecondOrStepTimer",
    "SequenceExample",
    "Server",
    "ServerDef",
    "SessionCreator",
    "SessionManager",
    "SessionRunArgs",
    "SessionRunContext",
    "SessionRunHook",
    "SessionRunValues",
    "SingularMonitoredSession",
    "StepCounterHook",
    "StopAtStepHook",
    "SummarySaverHook",
    "Supervisor",
    "SyncReplicasOptimizer",
    "VocabInfo",
    "WorkerSessionCreator",
    "add_queue_runner",
    "assert_global_step",
    "basic_train_loop",
    "batch",
    "batch_join",
    "checkpoint_exists",
    "checkpoints_iterator",
    "cosine_decay",
    "cosine_decay_restarts",
    "create_global_step",
    "experimental",
    "exponential_decay",
    "export_meta_graph",
    "export_safetensors",
    "generate_checkpoint_state_proto",
    "get_checkpoint_mtimes",
    "get_checkpoint_state",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "import_meta_graph",
    "init_from_checkpoint",
    "input_producer",
    "inverse_time_decay",
    "latest_checkpoint",
    "limit_epochs",
    "linear_cosine_decay",
    "list_variables",
    "load_checkpoint",
    "load_safetensors",
    "load_variable",
    "match_filenames_once",
    "maybe_batch",
    "maybe_batch_join",
    "maybe_shuffle_batch",
    "maybe_shuffle_batch_join",
    "natural_exp_decay",
    "noisy_linear_cosine_decay",
    "piecewise_constant",
    "piecewise_constant_decay",
    "polynomial_decay",
    "range_input_producer",
    "remove_checkpoint",
    "replica_device_setter",
    "restore_safetensors",
    "sdca_fprint",
    "sdca_optimizer",
    "sdca_shrink_l1",
    "shuffle_batch",
    "shuffle_batch_join",
    "slice_input_producer",
    "start_queue_runners",
    "string_input_producer",
    "summary_iterator",
    "update_checkpoint_state",
    "warm_start",
    "write_graph",
]
