import CoreData

/// The end of a run.
enum JobOutcome {
    case done
    case retried
    case failed
    case cancelled
    case postponed
    case lost

    /// The count of such runs.
    var count: WritableKeyPath<JobCounts, Int> {
        switch self {
        case .done: \.done
        case .retried: \.retried
        case .failed: \.failed
        case .cancelled: \.cancelled
        case .postponed: \.postponed
        case .lost: \.lost
        }
    }

    /// The event that reports it.
    var event: CoreDataEvent.Kind {
        switch self {
        case .done: .jobDone
        case .retried: .jobRetry
        case .failed: .jobFailure
        case .cancelled: .jobCancellation
        case .postponed: .jobPostponement
        case .lost: .jobLoss
        }
    }
}
