import Expectations
import StrataRows
import Testing

@Suite("Plans of fetches")
struct FetchPlanTests {
    private func plan(limit: Int, offset: Int) -> FetchPlan {
        FetchPlan(
            layout: Schemas.items.entities[0],
            entityNumbers: [1],
            coversHierarchy: true,
            predicate: nil,
            sort: nil,
            limit: limit,
            offset: offset
        )
    }

    @Test func `plans of one request that have the same identity ask the same question`() {
        for (limit, offset) in [(0, 0), (0, 3), (5, 0), (5, 3), (.max, 3)] {
            let whole = plan(limit: limit, offset: offset)
            let plans = [
                whole, whole.unordered, whole.unfiltered, whole.firstPart, whole.widened(by: 2), whole.widened(by: 3),
                whole.widened(by: 2).firstPart, whole.widened(by: 1).widened(by: 1), whole.firstPart.unordered,
            ]
            for plan in plans {
                for other in plans where other.identity == plan.identity {
                    expectEqual(plan.limit, other.limit)
                    expectEqual(plan.offset, other.offset)
                }
            }
            expectEqual(whole.widened(by: 1).widened(by: 1).identity, whole.widened(by: 2).identity)
            expectEqual(whole.widened(by: 2).firstPart.identity, whole.widened(by: 2).identity)
        }
    }

    @Test func `a plan that a part does not change keeps its identity`() {
        let all = plan(limit: 0, offset: 0)
        for part in [all.unordered, all.unfiltered, all.firstPart, all.widened(by: 2)] {
            expectEqual(part.identity, .whole)
        }
        let first = plan(limit: 5, offset: 0)
        expectEqual(first.firstPart.identity, .whole)
        expectEqual(first.widened(by: 2).identity, .first(surplus: 2))
        expectEqual(first.unordered.identity, .unordered)
    }
}
