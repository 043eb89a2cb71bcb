import Expectations
import StrataSQL
import Testing

@testable import StrataSQLiteStore

@Suite("The last members of ordered relationships that saves have stored")
struct LastMembersTests {
    private let members = LastMembers()

    private func place(_ owner: Int64, _ order: String = "Z_FOK_OWNER") -> LastMembers.Place {
        let positions = MemberPositions(
            table: SQLName("ZITEM"),
            owner: SQLName("ZOWNER"),
            member: SQLName("Z_PK"),
            order: SQLName(order)
        )
        return LastMembers.Place(owner: owner, positions: positions)
    }

    private func entry(_ member: Int64, _ version: Int64 = 7, epoch: UInt64 = 0) -> LastMembers.Entry {
        LastMembers.Entry(member: member, ownerVersion: version, epoch: epoch)
    }

    @Test func `an entry is of one relationship of one owner, at one version and without commits of others`() {
        members.keep([place(1): entry(10, epoch: 3), place(2): entry(20, 8, epoch: 3)])
        expectEqual(members.last(at: place(1), ownerVersion: 7, 3), 10)
        expectEqual(members.last(at: place(2), ownerVersion: 8, 3), 20)
        expect(members.last(at: place(3), ownerVersion: 7, 3) == nil)
        expect(members.last(at: place(1, "Z_FOK_OTHER"), ownerVersion: 7, 3) == nil)
        expect(members.last(at: place(1), ownerVersion: 6, 3) == nil)
        expect(members.last(at: place(1), ownerVersion: 8, 3) == nil)
        expect(members.last(at: place(1), ownerVersion: 7, 2) == nil)
        expect(members.last(at: place(1), ownerVersion: 7, 4) == nil)
    }

    @Test func `later saves replace an entry or forget it, and leave the others`() {
        members.keep([place(1): entry(10), place(2): entry(20)])
        members.keep([place(1): entry(11, 8)])
        expect(members.last(at: place(1), ownerVersion: 7, 0) == nil)
        expectEqual(members.last(at: place(1), ownerVersion: 8, 0), 11)
        members.keep([place(1): nil])
        expect(members.last(at: place(1), ownerVersion: 8, 0) == nil)
        expectEqual(members.last(at: place(2), ownerVersion: 7, 0), 20)
        members.removeAll()
        expect(members.last(at: place(2), ownerVersion: 7, 0) == nil)
    }

    @Test func `a thousand entries are kept, and then it begins anew`() {
        func known() -> Int { (1...2_000).count { members.last(at: place($0), ownerVersion: 7, 0) == $0 } }
        for owner in Int64(1)...1_000 { members.keep([place(owner): entry(owner)]) }
        expectEqual(known(), 1_000)
        members.keep([place(1_001): entry(1_001)])
        expectEqual(known(), 1)
        for owner in Int64(1)...10 { members.keep([place(owner): entry(owner)]) }
        expectEqual(known(), 11)
    }
}
