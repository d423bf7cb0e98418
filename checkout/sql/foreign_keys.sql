-- Foreign keys of payments to orders, refunds and shares. The models of payments have plain ids, because payments must not
-- import checkout.

ALTER TABLE payments_payment ADD CONSTRAINT payment_checkout_fk FOREIGN KEY (checkout_uuid)
    REFERENCES checkout_checkout (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE payments_operation ADD CONSTRAINT operation_refund_fk FOREIGN KEY (refund_uuid)
    REFERENCES checkout_refund (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE payments_operation ADD CONSTRAINT operation_share_fk FOREIGN KEY (share_uuid)
    REFERENCES checkout_paymentrequest (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE payments_movement ADD CONSTRAINT movement_checkout_fk FOREIGN KEY (checkout_uuid)
    REFERENCES checkout_checkout (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE payments_booking ADD CONSTRAINT booking_checkout_fk FOREIGN KEY (checkout_uuid)
    REFERENCES checkout_checkout (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE payments_booking ADD CONSTRAINT booking_share_fk FOREIGN KEY (share_uuid)
    REFERENCES checkout_paymentrequest (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE payments_dispute ADD CONSTRAINT dispute_checkout_fk FOREIGN KEY (checkout_uuid)
    REFERENCES checkout_checkout (id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE payments_posting ADD CONSTRAINT posting_checkout_fk FOREIGN KEY (checkout_uuid)
    REFERENCES checkout_checkout (id) DEFERRABLE INITIALLY DEFERRED;
